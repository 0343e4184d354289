'use strict';

// Builds package.artifact before osls reads it. The architecture is the functions' own, so that zip and template agree;
// at stage `local` it is this machine's, which is where the handlers then run.

const { spawnSync } = require('child_process');
const fs = require('fs');
const path = require('path');

class PackageBuilder {
  constructor(serverless) {
    this.serverless = serverless;
    this.hooks = {
      'before:package:createDeploymentArtifacts': () => this.build(),
      'before:deploy:function:packageFunction': () => this.build(),
      'after:package:finalize': () => this.checkLimits(),
    };
  }

  build() {
    const root = this.serverless.serviceDir;
    const output = (this.serverless.service.package || {}).artifact;
    if (!output) throw this.error('package.artifact is not set: it names the zip to build');
    const target = [...this.target(), ...this.engines(), ...this.layer(), ...this.config(), '--output', path.resolve(root, output)];
    if (this.python('deploy.build', target) !== 0) throw this.error('the package was not built: the reason is above');
    const { parquet } = this.serverless.service.layers || {};
    if (!parquet) return;
    const layer = [...this.target(), '--output', path.resolve(root, parquet.package.artifact)];
    if (this.python('deploy.parquet', layer) !== 0) throw this.error('the layer was not built: the reason is above');
  }

  /* AWS's limits, of the template that lies there and of nothing that was sent. */
  checkLimits() {
    const { options = {} } = this.serverless.processedInput || {};
    const folder = options.package || (this.serverless.service.package || {}).path || '.serverless';
    const template = path.resolve(this.serverless.serviceDir, folder, 'cloudformation-template-update-stack.json');
    if (this.python('deploy.limits', [template]) !== 0) throw this.error('nothing was sent: the reason is above');
  }

  python(module, rest) {
    const root = this.serverless.serviceDir;
    const python = this.interpreter();
    const done = spawnSync(python, ['-m', module, ...rest], { cwd: root, stdio: ['ignore', 'inherit', 'inherit'] });
    if (done.error) throw this.error(`${python} does not start (${done.error.code}): run \`make install\``);
    return done.status;
  }

  /* The Python of `make install`; without it, that of an environment which uv makes from the lock. */
  interpreter() {
    const root = this.serverless.serviceDir;
    const installed = path.join(root, '.venv', 'bin', 'python');
    if (fs.existsSync(installed)) return installed;
    const folder = path.join(root, '.build', 'venv');
    const sync = ['sync', '--quiet', '--frozen', '--no-install-project', '--extra', 'aioboto3', '--extra', 'crc64'];
    const env = { ...process.env, UV_PROJECT_ENVIRONMENT: folder };
    const done = spawnSync(path.join(root, 'tools', 'uv'), sync, { cwd: root, env, stdio: ['ignore', 'inherit', 'inherit'] });
    if (done.status !== 0) throw this.error('the package needs uv, or Python 3.11 or later: the reason is above');
    return path.join(folder, 'bin', 'python');
  }

  target() {
    const version = /^python(.+)$/.exec(this.serverless.service.provider.runtime || '');
    return [...this.machine(), ...(version ? ['--python', version[1]] : [])];
  }

  machine() {
    if (this.serverless.getProvider('aws').getStage() === 'local') return ['--local'];
    const fallback = this.serverless.service.provider.architecture || 'x86_64';
    const functions = Object.values(this.serverless.service.functions || {});
    const wanted = new Set(functions.map((one) => one.architecture || fallback));
    if (wanted.size > 1) throw this.error('the functions differ in their architecture: one package serves them all');
    return ['--architecture', [...wanted][0] || fallback];
  }

  engines() {
    return ((this.serverless.service.custom || {}).checked || {}).engines === 'all' ? ['--engines', 'all'] : [];
  }

  layer() {
    return (this.serverless.service.layers || {}).dependencies ? ['--layer'] : [];
  }

  config() {
    const { config, packedBuckets = [] } = (this.serverless.service.custom || {}).checked || {};
    return [...(config ? ['--config', config] : []), ...(packedBuckets.length ? ['--buckets', packedBuckets.join(',')] : [])];
  }

  error(message) {
    return new this.serverless.classes.Error(message);
  }
}

module.exports = PackageBuilder;
