'use strict';

// Not every Region takes functions of more than 900 seconds. Where CloudFormation refuses a longer timeout, its own words
// name no parameter of ours.

const EVERYWHERE = 900;
const NAMES = ['auditTimeout', 'hashingTimeout', 'verifyTimeout'];

class Timeouts {
  constructor(serverless) {
    this.serverless = serverless;
    this.hooks = { error: (error) => this.explain(error) };
  }

  explain(error) {
    const { checked } = this.serverless.service.custom;
    const longer = NAMES.filter((name) => checked[name] > EVERYWHERE);
    if (!longer.length || !/timeout/i.test(error.message) || !error.message.includes(EVERYWHERE)) return;
    const region = this.serverless.getProvider('aws').getRegion();
    error.message += `\n${region} refuses functions of more than ${EVERYWHERE} seconds: give ${EVERYWHERE} for ${longer.join(' and ')}`;
  }
}

module.exports = Timeouts;
