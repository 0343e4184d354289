// The program makes the benchmarks' calls with the AWS SDK for Go v2.
//
// The first line of its input is a job, in JSON; the program answers with the versions that it is built of. Each
// further line is a number of objects: the program makes the job's calls for them, and answers with the CPU seconds
// that it has used since its start. A call that fails ends it.
package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

const service = "github.com/aws/aws-sdk-go-v2/service/s3"

type job struct {
	URL         string   `json:"url"`
	Authority   string   `json:"authority"` // path of the certificate of the server's authority; empty without TLS
	Bucket      string   `json:"bucket"`
	Keys        []string `json:"keys"`
	Operations  []string `json:"operations"` // of each object: "head", "acl"
	Concurrency int      `json:"concurrency"`
}

func main() {
	if err := answer(bufio.NewScanner(os.Stdin), json.NewEncoder(os.Stdout)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func answer(lines *bufio.Scanner, answers *json.Encoder) error {
	lines.Buffer(nil, 1<<20)
	lines.Scan()
	var given job
	if err := json.Unmarshal(lines.Bytes(), &given); err != nil {
		return err
	}
	client, err := open(given)
	if err != nil {
		return err
	}
	if err := answers.Encode(versions()); err != nil {
		return err
	}
	for lines.Scan() {
		objects, err := strconv.ParseInt(lines.Text(), 10, 64)
		if err != nil {
			return err
		}
		if err := calls(client, given, objects); err != nil {
			return err
		}
		if err := answers.Encode(map[string]float64{"cpu": cpuSeconds()}); err != nil {
			return err
		}
	}
	return lines.Err()
}

// open makes a client with the SDK's defaults, but for a pool that keeps a connection for each call in flight: by
// default it keeps ten, and the others would shake hands again and again.
func open(given job) (*s3.Client, error) {
	var roots *x509.CertPool
	if given.Authority != "" {
		found, err := os.ReadFile(given.Authority)
		if err != nil {
			return nil, err
		}
		roots = x509.NewCertPool()
		if !roots.AppendCertsFromPEM(found) {
			return nil, fmt.Errorf("no certificate in %s", given.Authority)
		}
	}
	transport := awshttp.NewBuildableClient().WithTransportOptions(func(options *http.Transport) {
		options.MaxIdleConns, options.MaxIdleConnsPerHost = given.Concurrency, given.Concurrency
		if options.TLSClientConfig == nil {
			options.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
		}
		options.TLSClientConfig.RootCAs = roots
	})
	credentials := aws.Credentials{AccessKeyID: "testing", SecretAccessKey: "testing"}
	return s3.New(s3.Options{
		BaseEndpoint: &given.URL,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return credentials, nil
		}),
		HTTPClient:   transport,
		Region:       "us-east-1",
		UsePathStyle: true,
	}), nil
}

// calls makes the calls of so many objects, with as many goroutines as there may be calls in flight.
func calls(client *s3.Client, given job, objects int64) error {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	var next atomic.Int64
	var workers sync.WaitGroup
	for range given.Concurrency {
		workers.Add(1)
		go func() {
			defer workers.Done()
			for number := next.Add(1) - 1; number < objects && ctx.Err() == nil; number = next.Add(1) - 1 {
				if err := ask(ctx, client, given, given.Keys[number%int64(len(given.Keys))]); err != nil {
					cancel(err)
				}
			}
		}()
	}
	workers.Wait()
	return context.Cause(ctx)
}

func ask(ctx context.Context, client *s3.Client, given job, key string) error {
	for _, operation := range given.Operations {
		var err error
		switch operation {
		case "head":
			_, err = client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &given.Bucket, Key: &key})
		case "acl":
			_, err = client.GetObjectAcl(ctx, &s3.GetObjectAclInput{Bucket: &given.Bucket, Key: &key})
		default:
			err = fmt.Errorf("there is no operation %q", operation)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// cpuSeconds is the user and system time of this process, with all its threads.
func cpuSeconds() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9
}

// versions are those of Go and of the SDK's client of S3.
func versions() map[string]string {
	found := map[string]string{"Go": strings.TrimPrefix(runtime.Version(), "go")}
	if built, ok := debug.ReadBuildInfo(); ok {
		for _, module := range built.Deps {
			if module.Path == service {
				found["service/s3"] = module.Version
			}
		}
	}
	return found
}
