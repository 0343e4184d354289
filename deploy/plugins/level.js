'use strict';

// A level that is not given falls back to its default. Where more is deployed, that would take away what nobody asked
// to lose: the hashing worker, its queues and the messages in them, or the HEAD of every object.

const { DescribeStacksCommand } = require('@aws-sdk/client-cloudformation');

const LEVELS = ['exposure', 'metadata', 'fixity'];

class LevelKept {
  constructor(serverless) {
    this.serverless = serverless;
    this.hooks = { initialize: () => this.check() };
  }

  async check() {
    const { commands, options } = this.serverless.processedInput;
    if (commands.join(' ') !== 'deploy') return;
    if ((options.param || []).some((one) => one.startsWith('level='))) return;
    const { level } = this.serverless.service.custom.checked;
    const deployed = await this.deployed();
    if (LEVELS.indexOf(deployed) <= LEVELS.indexOf(level)) return;
    const lost = deployed === 'fixity' ? ', which removes the hashing worker and its queues with their messages' : '';
    throw new this.serverless.classes.Error(
      `${this.stack()} is deployed at level ${deployed}, and this would lower it to ${level}${lost}: ` +
        `say which is meant, LEVEL=${deployed} or LEVEL=${level} (--param level=${deployed} or --param level=${level})`,
    );
  }

  stack() {
    return this.serverless.getProvider('aws').naming.getStackName();
  }

  /* The level of the stack that is there; undefined where there is none. */
  async deployed() {
    const cloudFormation = await this.serverless.getProvider('aws').getCloudFormationClient();
    try {
      const found = await cloudFormation.send(new DescribeStacksCommand({ StackName: this.stack() }));
      const outputs = found.Stacks[0].Outputs || [];
      return (outputs.find((one) => one.OutputKey === 'Level') || {}).OutputValue;
    } catch (error) {
      if (error.name === 'ValidationError') return undefined; // CloudFormation's word for a stack that does not exist
      throw error;
    }
  }
}

module.exports = LevelKept;
