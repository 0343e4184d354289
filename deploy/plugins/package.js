'use strict';

// Builds package.artifact before osls reads it. The architecture is the functions' own, so that zip and template agree;
// at stage `local` it is this machine's, which is where the handlers then run.

const { spawnSync } = require('child_process');
const path = require('path');

class PackageBuilder {
  constructor(serverless) {
    this.serverless = serverless;
    this.hooks = {
      'before:package:createDeploymentArtifacts': () => this.build(),
      'before:deploy:function:packageFunction': () => this.build(),
    };
  }

  build() {
    const root = this.serverless.serviceDir;
    const output = (this.serverless.service.package || {}).artifact;
    if (!output) throw this.error('package.artifact is not set: it names the zip to build');
    const python = path.join(root, '.venv', 'bin', 'python');
    const built = spawnSync(
      python,
      ['-m', 'deploy.build', ...this.target(), ...this.layer(), ...this.config(), '--output', path.resolve(root, output)],
      { cwd: root, stdio: ['ignore', 'inherit', 'inherit'] },
    );
    if (built.error) throw this.error(`${python} does not start (${built.error.code}): run \`make install\``);
    if (built.status !== 0) throw this.error('the package was not built: the reason is above');
  }

  target() {
    if (this.serverless.getProvider('aws').getStage() === 'local') return ['--local'];
    const fallback = this.serverless.service.provider.architecture || 'x86_64';
    const functions = Object.values(this.serverless.service.functions || {});
    const wanted = new Set(functions.map((one) => one.architecture || fallback));
    if (wanted.size > 1) throw this.error('the functions differ in their architecture: one package serves them all');
    return ['--architecture', [...wanted][0] || fallback];
  }

  layer() {
    return Object.keys(this.serverless.service.layers || {}).length ? ['--layer'] : [];
  }

  config() {
    const { checked } = this.serverless.service.custom || {};
    return checked && checked.config ? ['--config', checked.config] : [];
  }

  error(message) {
    return new this.serverless.classes.Error(message);
  }
}

module.exports = PackageBuilder;
