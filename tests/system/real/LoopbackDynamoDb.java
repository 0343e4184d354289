import com.amazonaws.services.dynamodbv2.local.main.ServerRunner;
import com.amazonaws.services.dynamodbv2.local.server.DynamoDBProxyServer;
import java.lang.reflect.Field;
import org.eclipse.jetty.server.Connector;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;

/** DynamoDB Local on 127.0.0.1 and a free port, which it prints: by itself it listens on every interface. */
public final class LoopbackDynamoDb {
    public static void main(String[] arguments) throws Exception {
        DynamoDBProxyServer proxy = ServerRunner.createServerFromCommandLineArgs(arguments);
        Field field = DynamoDBProxyServer.class.getDeclaredField("server");
        field.setAccessible(true);
        Server server = (Server) field.get(proxy);
        for (Connector connector : server.getConnectors()) {
            ((ServerConnector) connector).setHost("127.0.0.1");
            ((ServerConnector) connector).setPort(0);
        }
        proxy.start();
        System.out.println("PORT " + ((ServerConnector) server.getConnectors()[0]).getLocalPort());
        System.out.flush();
        proxy.join();
    }
}
