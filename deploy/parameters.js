'use strict';

/* The parameters of parameters.yml, checked, and what follows from them; an error is one sentence that names the fix. */

const ARCHITECTURES = ['arm64', 'x86_64', 'host'];
const HOST = process.arch === 'arm64' ? 'arm64' : 'x86_64';
const LEVELS = ['exposure', 'metadata', 'fixity'];
const NAMES = [
  'buckets', 'level', 'bucketAccount', 'versions', 'requesterPays', 'trusted', 'auditedKeys', 'schedule',
  'timezone', 'scheduleState', 'silentHours', 'verifySchedule', 'verifyScheduleState', 'verifyMaxAge',
  'verifyPercent', 'verifyEvery', 'verifyTimeout', 'verifyMemory', 'engine', 'concurrency', 'maxRate', 'algorithms', 'acceptCost',
  'config', 'architecture', 'dependencies', 'auditTimeout', 'auditMemory', 'hashingTimeout', 'hashingMemory',
  'visibilityTimeout', 'hashingConcurrency', 'notificationConcurrency', 'maxReceives', 'oldestHash',
  'oldestNotification', 'logDays', 'logLevel', 'reportDays', 'alertAddress', 'reportsBucket', 'topic', 'ledger',
  'kmsKey', 'notificationTopic', 'permissionsBoundary', 'rolePath', 'subnets', 'securityGroups',
];
const NUMBERS = {
  silentHours: [1, 168],
  auditTimeout: [10, 900],
  auditMemory: [128, 10240],
  hashingTimeout: [10, 900],
  hashingMemory: [128, 10240],
  verifyTimeout: [10, 900],
  verifyMemory: [128, 10240],
  visibilityTimeout: [60, 43200],
  hashingConcurrency: [2, 1000],
  notificationConcurrency: [2, 1000],
  maxReceives: [1, 1000],
  oldestHash: [60, 1209600],
  oldestNotification: [60, 1209600],
  logDays: [1, 3653],
  reportDays: [1, 36500],
};
const TABLE = /^(arn:[a-z-]+:dynamodb:[a-z0-9-]+:[0-9]{12}:table\/)?[A-Za-z0-9_.-]{3,255}$/;
const TIME = /^[0-9]{1,9}(\.[0-9]{1,9})?[mhdw]$/;
const PERCENT = /^[0-9]{1,3}(\.[0-9]{1,9})?$/;
const BUCKET = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/;

function fail(sentence) {
  const error = new Error(sentence);
  error.stack = undefined; // the sentence is for whoever gave the parameter
  throw error;
}

function number(name, value) {
  const [least, most] = NUMBERS[name];
  if (!/^[0-9]+$/.test(value) || Number(value) < least || Number(value) > most) {
    fail(`the parameter ${name} is '${value}': give a whole number from ${least} to ${most}`);
  }
  return Number(value);
}

function choice(name, value, choices) {
  if (!choices.includes(value)) fail(`the parameter ${name} is '${value}': give ${choices.join(' or ')}`);
  return value;
}

function targets(buckets) {
  const uris = buckets.split(',').map((text) => text.trim()).filter(Boolean);
  if (!uris.length) fail('the parameter buckets is missing: add --param buckets=my-bucket, or set it in deploy/parameters.yml');
  return uris.map((uri) => {
    const path = uri.replace(/^s3:\/\//, '');
    const slash = path.indexOf('/');
    const bucket = slash < 0 ? path : path.slice(0, slash);
    if (!BUCKET.test(bucket)) fail(`the parameter buckets names '${uri}', which is no bucket: write name or s3://name/prefix`);
    return { bucket, prefix: slash < 0 ? '' : path.slice(slash + 1) };
  });
}

function arn(resource) {
  return { 'Fn::Join': ['', ['arn:', { Ref: 'AWS::Partition' }, ':s3:::', resource]] };
}

/* In an ARN `*`, `?` and `$` mean something (IAM User Guide, policy variables). */
function literal(prefix) {
  return prefix.replace(/[*?$]/g, (character) => `\${${character}}`);
}

/* What EventBridge says of objects of the targets that were made or restored, or are gone: docs/notifications.md has them. */
function objectEvents(found) {
  const whole = found.filter(({ prefix }) => !prefix).map(({ bucket }) => bucket);
  const parts = found.filter(({ bucket, prefix }) => prefix && !whole.includes(bucket));
  const details = parts.map(({ bucket, prefix }) => ({ bucket: { name: [bucket] }, object: { key: [{ prefix }] } }));
  if (whole.length) details.unshift({ bucket: { name: [...new Set(whole)] } });
  const detail = details.length === 1 ? details[0] : { $or: details };
  return { source: ['aws.s3'], 'detail-type': ['Object Created', 'Object Deleted', 'Object Restore Completed'], detail };
}

/* The layer lies beside the function's own package. */
function layers(checked, service) {
  if (checked.dependencies === 'bundled') return {};
  return {
    dependencies: {
      name: `${service}-dependencies`,
      description: 'What the functions of the S3 auditor depend on',
      package: { artifact: checked.artifact.replace('.zip', '-layer.zip') },
      compatibleRuntimes: ['python3.13'],
      compatibleArchitectures: [checked.architecture],
    },
  };
}

function checkNames(given) {
  for (const item of given || []) {
    const name = item.split('=')[0];
    if (!NAMES.includes(name)) fail(`there is no parameter '${name}': deploy/parameters.yml lists them`);
  }
}

module.exports = async ({ options, resolveVariable }) => {
  checkNames(options.param);
  const values = {};
  for (const name of NAMES) values[name] = String((await resolveVariable(`param:${name}`)) ?? '');
  const checked = { ...values };
  for (const name of Object.keys(NUMBERS)) checked[name] = number(name, values[name]);
  choice('level', values.level, LEVELS);
  const architecture = choice('architecture', values.architecture, ARCHITECTURES);
  checked.artifact = `.build/function-${architecture === 'host' ? 'local' : architecture}.zip`;
  checked.architecture = architecture === 'host' ? HOST : architecture;
  choice('dependencies', values.dependencies, ['bundled', 'layer']);
  checked.layers = layers(checked, `${await resolveVariable('self:service')}-${await resolveVariable('sls:stage')}`);
  checked.layersOfFunctions = Object.keys(checked.layers).length ? [{ Ref: 'DependenciesLambdaLayer' }] : [];
  if (values.ledger && !TABLE.test(values.ledger)) {
    fail(`the parameter ledger is '${values.ledger}': give the name or the ARN of a DynamoDB table`);
  }
  // Where the function finds the file: the builder puts it at the root of its package, whatever its own name is.
  checked.configFile = values.config ? 'auditor.toml' : '';
  choice('logLevel', values.logLevel, ['DEBUG', 'INFO', 'WARNING', 'ERROR']);
  choice('scheduleState', values.scheduleState, ['ENABLED', 'DISABLED']);
  choice('verifyScheduleState', values.verifyScheduleState, ['ENABLED', 'DISABLED']);
  for (const name of ['verifyMaxAge', 'verifyEvery']) {
    if (!TIME.test(values[name])) fail(`the parameter ${name} is '${values[name]}': give a time like 90d or 12h`);
  }
  if (values.verifyPercent && !(PERCENT.test(values.verifyPercent) && values.verifyPercent > 0 && values.verifyPercent <= 100)) {
    fail(`the parameter verifyPercent is '${values.verifyPercent}': give a percentage above 0 and up to 100`);
  }
  // No command line can empty a parameter that has a default.
  if (values.verifyPercent) checked.verifyMaxAge = '';
  if (checked.visibilityTimeout < 6 * checked.hashingTimeout) {
    fail(`the parameter visibilityTimeout is ${checked.visibilityTimeout}: give six times hashingTimeout, ${6 * checked.hashingTimeout}, or more`);
  }
  const found = targets(values.buckets);
  checked.bucketArns = [...new Set(found.map(({ bucket }) => bucket))].map(arn);
  checked.contentArns = [...new Set(found.map(({ bucket }) => bucket))].map((bucket) => arn(`${bucket}/*`));
  checked.objectArns = found.map(({ bucket, prefix }) => arn(`${bucket}/${literal(prefix)}*`));
  checked.objectEvents = objectEvents(found);
  return checked;
};
