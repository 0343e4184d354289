'use strict';

// Stage `local` is a server on this machine: whatever talks to AWS refuses to start unless it is told of one.

const ENDPOINT = /^http:\/\/127\.0\.0\.1:[0-9]+\/?$/;
const OFFLINE = ['package', 'print', 'help', 'plugin', 'doctor'];

class LocalOnly {
  constructor(serverless) {
    this.serverless = serverless;
    this.hooks = { initialize: () => this.check() };
  }

  check() {
    const [command] = this.serverless.processedInput.commands;
    if (!command || OFFLINE.includes(command)) return;
    if (this.serverless.getProvider('aws').getStage() !== 'local') return;
    if (!ENDPOINT.test(process.env.AWS_ENDPOINT_URL || '')) {
      throw this.error('stage local needs a server on this machine: set AWS_ENDPOINT_URL=http://127.0.0.1:PORT');
    }
    // One service's own variable wins over the one for all, and this one turns all of them off.
    const others = Object.keys(process.env).filter((name) => name.startsWith('AWS_ENDPOINT_URL_'));
    const away = others.find((name) => !ENDPOINT.test(process.env[name]));
    if (away) throw this.error(`stage local needs a server on this machine: unset ${away}`);
    if ((process.env.AWS_IGNORE_CONFIGURED_ENDPOINT_URLS || '').toLowerCase() === 'true') {
      throw this.error('stage local needs a server on this machine: unset AWS_IGNORE_CONFIGURED_ENDPOINT_URLS');
    }
  }

  error(message) {
    return new this.serverless.classes.Error(message);
  }
}

module.exports = LocalOnly;
