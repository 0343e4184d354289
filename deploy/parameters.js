'use strict';

/* The parameters of parameters.yml, checked, and what follows from them; an error is one sentence that names the fix. */

const crypto = require('crypto');
const fs = require('fs');
const path = require('path');

const ARCHITECTURES = ['arm64', 'x86_64', 'host'];
const HOST = process.arch === 'arm64' ? 'arm64' : 'x86_64';
const LEVELS = ['exposure', 'metadata', 'fixity'];
const NAMES = [
  'buckets', 'roleBuckets', 'level', 'bucketAccount', 'versions', 'requesterPays', 'keyPolicies', 'inventory', 'inventoryKey', 'parquet', 'trusted', 'auditedKeys', 'schedule',
  'timezone', 'scheduleState', 'silentHours', 'bucketAlarms', 'verifySilentHours', 'verifySchedule', 'verifyScheduleState', 'verifyMaxAge',
  'verifyPercent', 'verifyEvery', 'verifyTimeout', 'verifyMemory', 'engine', 'engines', 'runtime', 'concurrency', 'maxRate', 'algorithms', 'acceptCost',
  'config', 'architecture', 'dependencies', 'auditTimeout', 'auditMemory', 'hashingTimeout', 'hashingMemory',
  'hashingConcurrency', 'notificationConcurrency', 'maxReceives', 'oldestHash',
  'oldestNotification', 'logDays', 'logLevel', 'reportDays', 'alertAddress', 'reportsBucket', 'topic', 'chatTopic', 'eventBus', 'ledger',
  'kmsKey', 'notificationTopic', 'tags', 'deploymentBucket', 'serviceRole', 'permissionsBoundary', 'rolePath', 'subnets', 'securityGroups',
  'fileSystem', 'out', 'mapConcurrency', 'renew', 'renewRate',
];
// Most seconds of a function. Some Regions stop at 900: deploy/plugins/timeouts.js.
const LONGEST = 1800;
const NUMBERS = {
  silentHours: [1, 168],
  verifySilentHours: [0, 168],
  auditTimeout: [10, LONGEST],
  auditMemory: [128, 10240],
  hashingTimeout: [10, LONGEST],
  hashingMemory: [128, 10240],
  verifyTimeout: [10, LONGEST],
  verifyMemory: [128, 10240],
  hashingConcurrency: [2, 1000],
  notificationConcurrency: [2, 1000],
  maxReceives: [1, 1000],
  oldestHash: [60, 1209600],
  oldestNotification: [60, 1209600],
  renewRate: [2, 10000],
  logDays: [1, 3653],
  reportDays: [1, 36500],
};
// Fewest MB of an audit function that reads reports of S3 Inventory, in CSV and in Parquet: docs/deploy.md, "S3 Inventory".
const INVENTORY_MEMORY = 512;
const PARQUET_MEMORY = 768;
// The concurrency that Lambda gives an account (Lambda quotas).
const MOST_AT_ONCE = 1000;
const TABLE = /^(arn:[a-z-]+:dynamodb:[a-z0-9-]+:[0-9]{12}:table\/)?[A-Za-z0-9_.-]{3,255}$/;
const TAG = /^[\p{L}\p{Z}\p{N}_.:/=+\-@]*$/u;
const ROLE = /^arn:[a-z-]+:iam::[0-9]{12}:role\/.+$/;
const KEY = /^arn:[a-z-]+:kms:([a-z0-9-]+):[0-9]{12}:key\/[A-Za-z0-9-]+$/;
const TOPIC = /^arn:[a-z-]+:sns:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_-]{1,256}$/;
const BUS = /^arn:[a-z-]+:events:[a-z0-9-]+:[0-9]{12}:event-bus\/[A-Za-z0-9._/-]{1,256}$/;
const FILES = /^arn:[a-z-]+:elasticfilesystem:([a-z0-9-]+):[0-9]{12}:access-point\/fsap-[0-9a-f]+$/;
const MOUNTED = /^\/mnt\/reports(\/[A-Za-z0-9._-]+)*$/;
const TIME = /^[0-9]{1,9}(\.[0-9]{1,9})?[mhdw]$/;
const PERCENT = /^[0-9]{1,3}(\.[0-9]{1,9})?$/;
// What CloudFormation can put into an ARN and a condition as it is: no wildcard, no variable, no space.
const INVENTORY = /^s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:\/((?:[A-Za-z0-9!_.'()=-]+\/)*(?:[A-Za-z0-9!_.'()=-]+)?))?$/;
const BUCKET = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/;
const EVERY = '*';
const PATTERN = /^[a-z0-9.*-]{1,63}$/;
// Lambda takes 4,096 bytes of variables (Lambda quotas). A longer list lies in the package, in its auditor.toml.
const LONGEST_VARIABLE = 2048;
// EventBridge takes 2,048 characters of a pattern (EventBridge quotas); what surrounds the buckets is below 300.
const LONGEST_DETAILS = 1700;

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

/* Of the ranges that are audited at once: a number, or auto, which follows from maxRate when the audit begins. */
function atOnce(value) {
  if (value === 'auto') return value;
  if (!/^[0-9]+$/.test(value) || Number(value) < 1 || Number(value) > MOST_AT_ONCE) {
    fail(`the parameter mapConcurrency is '${value}': give auto, or a whole number from 1 to ${MOST_AT_ONCE}`);
  }
  return Number(value);
}

function choice(name, value, choices) {
  if (!choices.includes(value)) fail(`the parameter ${name} is '${value}': give ${choices.join(' or ')}`);
  return value;
}

/* The region of a key. IAM and DynamoDB know keys by their ARN, not by an alias. */
function keyRegion(name, arn) {
  const found = KEY.exec(arn);
  if (!found) fail(`the parameter ${name} has '${arn}': give the ARN of a KMS key, arn:..:kms:REGION:ACCOUNT:key/ID, and no alias`);
  return found[1];
}

/* A shared file system lies in a VPC. */
function checkFiles({ fileSystem, out, subnets, securityGroups }, region) {
  if (fileSystem && (FILES.exec(fileSystem) || [])[1] !== region) {
    fail(`the parameter fileSystem is '${fileSystem}': give the ARN of an EFS access point of the stack's region, ${region}`);
  }
  if (fileSystem && !(subnets && securityGroups)) {
    fail('the parameter fileSystem is given without a VPC: give subnets and securityGroups too, with a mount target in each subnet');
  }
  if (out && !fileSystem) fail(`the parameter out is '${out}' without a file system: give fileSystem too, or reportsBucket instead`);
  if (out && (!MOUNTED.test(out) || out.split('/').some((one) => one === '.' || one === '..'))) {
    fail(`the parameter out is '${out}': give a directory on the file system, /mnt/reports or /mnt/reports/NAME`);
  }
}

/* The bucket of the Inventory's reports, and the beginning of their keys. */
function inventory({ inventory: place, inventoryKey, parquet }, auditMemory) {
  const found = place ? INVENTORY.exec(place) : ['', '', ''];
  if (!found) fail(`the parameter inventory is '${place}': give the destination of the reports, s3://BUCKET/PREFIX, with letters, digits and !_.'()=- in the prefix`);
  if (inventoryKey && !place) fail('the parameter inventoryKey is given without inventory: give the destination of the reports too');
  if (inventoryKey) keyRegion('inventoryKey', inventoryKey);
  const reads = choice('parquet', parquet, ['true', 'false']) === 'true';
  const needed = reads ? PARQUET_MEMORY : INVENTORY_MEMORY;
  if ((place || reads) && auditMemory < needed) {
    fail(`the parameter auditMemory is ${auditMemory}, and reports of S3 Inventory${reads ? ' in Parquet' : ''} take more: give ${needed} or more`);
  }
  const prefix = (found[2] || '').replace(/\/$/, '');
  return {
    inventoryBucket: found[1],
    inventoryPrefix: prefix && `${prefix}/`,
    // Of the plain template's parameter, whose functions have their memory already: with too little, no name is taken.
    inventoryPattern: auditMemory < INVENTORY_MEMORY ? '^$' : '^([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])?$',
  };
}

function listed(buckets) {
  let text = buckets;
  if (buckets.startsWith('@')) {
    try {
      text = fs.readFileSync(buckets.slice(1), 'utf8');
    } catch (error) {
      fail(`the parameter buckets names the file '${buckets.slice(1)}', which cannot be read (${error.code}): check its path`);
    }
  }
  const uris = text.split(/[,\r\n]/).map((one) => one.trim()).filter((one) => one && !one.startsWith('#'));
  if (!uris.length) fail('the parameter buckets is missing: add --param buckets=my-bucket, or set it in deploy/parameters.yml');
  return [...new Set(uris)];
}

/* True if the audit lists the buckets of the account itself. The hashing worker's notifications need names. */
function everyBucket(uris, values) {
  if (!uris.includes(EVERY)) return false;
  if (uris.length > 1) fail(`the parameter buckets is '${EVERY}' and more: ${EVERY} is every bucket of the account, leave the others away`);
  if (values.level === 'fixity') fail(`the parameter buckets is '${EVERY}' at level fixity, whose notifications need names: use level metadata, or name the buckets`);
  if (values.bucketAccount) fail(`the parameter buckets is '${EVERY}', every bucket of this account: leave bucketAccount away`);
  return true;
}

function target(uri) {
  const path = uri.replace(/^s3:\/\//, '');
  const slash = path.indexOf('/');
  const bucket = slash < 0 ? path : path.slice(0, slash);
  if (!BUCKET.test(bucket)) fail(`the parameter buckets names '${uri}', which is not a bucket: write name or s3://name/prefix`);
  return { bucket, prefix: slash < 0 ? '' : path.slice(slash + 1) };
}

/* The patterns of roleBuckets. Each bucket has to match one of them, or the roles could not read it. */
function patterns(text, buckets) {
  const found = text.split(',').map((one) => one.trim()).filter(Boolean);
  for (const one of found) if (!PATTERN.test(one)) fail(`the parameter roleBuckets names '${one}': give bucket names with *`);
  const matches = found.map((one) => new RegExp(`^${one.replace(/[.]/g, '[.]').replace(/[*]/g, '.*')}$`));
  const missed = found.length && buckets.find((bucket) => !matches.some((one) => one.test(bucket)));
  if (missed) fail(`the parameter roleBuckets has no pattern for the bucket ${missed}: add one`);
  return found;
}

function arn(resource) {
  return { 'Fn::Join': ['', ['arn:', { Ref: 'AWS::Partition' }, ':s3:::', resource]] };
}

/* In an ARN `*`, `?` and `$` mean something (IAM User Guide, policy variables). */
function literal(prefix) {
  return prefix.replace(/[*?$]/g, (character) => `\${${character}}`);
}

/* The patterns of EventBridge's events of these kinds on objects of the targets. One rule's pattern holds some of the
   buckets, so there are as many rules as it takes. */
function eventPatterns(found, kinds) {
  const whole = [...new Set(found.filter(({ prefix }) => !prefix).map(({ bucket }) => bucket))];
  const parts = found.filter(({ bucket, prefix }) => prefix && !whole.includes(bucket));
  const patterns = [];
  let names = [];
  let details = [];
  const length = (one) => Buffer.byteLength(JSON.stringify(one));
  const close = () => {
    if (names.length) details.unshift({ bucket: { name: names } });
    if (details.length) patterns.push(details.length === 1 ? details[0] : { $or: details });
    [names, details] = [[], []];
  };
  for (const bucket of whole) {
    if (length([...names, bucket]) > LONGEST_DETAILS) close();
    names.push(bucket);
  }
  for (const { bucket, prefix } of parts) {
    const detail = { bucket: { name: [bucket] }, object: { key: [{ prefix }] } };
    if (length(names) + length([...details, detail]) > LONGEST_DETAILS) close();
    details.push(detail);
  }
  close();
  return patterns.map((detail) => ({ source: ['aws.s3'], 'detail-type': kinds, detail }));
}

/* A rule that sends the events of a pattern to a queue, and those that it cannot deliver for a day to another. */
function eventRule(name, description, pattern, queue, letters) {
  return {
    Type: 'AWS::Events::Rule',
    Properties: {
      Name: name,
      Description: description,
      EventPattern: pattern,
      Targets: [{
        Id: queue,
        Arn: { 'Fn::GetAtt': [queue, 'Arn'] },
        RetryPolicy: { MaximumRetryAttempts: 185, MaximumEventAgeInSeconds: 86400 },
        DeadLetterConfig: { Arn: { 'Fn::GetAtt': [letters, 'Arn'] } },
      }],
    },
  };
}

/* What EventBridge says of objects of the targets that were made or restored, or are gone: docs/outputs.md has them. */
function eventRules(found, service) {
  const [first, ...rest] = eventPatterns(found, ['Object Created', 'Object Deleted', 'Object Restore Completed']);
  const description = 'Objects made, deleted or restored in further buckets whose owner has turned EventBridge on';
  const more = rest.map((pattern, index) => [
    `ObjectEventsRule${index + 2}`,
    eventRule(`${service}-object-events-${index + 2}`, description, pattern, 'NotificationQueue', 'DeadLetterQueue'),
  ]);
  return { first, more: { Resources: Object.fromEntries(more) } };
}

/* Renewals between the nights. They have a share of the ceiling of calls, which the audits do without. Lambda runs two of
   their functions at once, the fewest that it takes for a queue (Lambda API, ScalingConfig): each has half of the share. */
function renewals(values, renewRate, found, every, service) {
  const renews = choice('renew', values.renew, ['true', 'false']) === 'true';
  if (!renews) return { auditRate: values.maxRate, renewRules: { Resources: {} }, renewRuleArns: [] };
  if (every) fail(`the parameter renew is 'true' and buckets is '${EVERY}': the rules of its events need names, name the buckets`);
  if (!(Number(values.maxRate) > renewRate)) {
    fail(`the parameter renewRate is ${renewRate}: give less than maxRate, ${values.maxRate}, of which it is a share`);
  }
  const patterns = eventPatterns(found, ['Object ACL Updated', 'Object Created', 'Object Restore Completed']);
  const description = 'ACLs changed, and objects made or restored, in buckets whose owner has turned EventBridge on';
  const rules = patterns.map((pattern, index) => [
    `RenewEventsRule${index + 1}`,
    eventRule(`${service}-renew-events-${index + 1}`, description, pattern, 'RenewQueue', 'RenewDeadLetterQueue'),
  ]);
  return {
    auditRate: Number(values.maxRate) - renewRate,
    renewRateOfEach: renewRate / 2,
    renewRules: { Resources: Object.fromEntries(rules) },
    renewRuleArns: rules.map(([rule]) => ({ 'Fn::GetAtt': [rule, 'Arn'] })),
  };
}

/* Tags by their names, ours among them. */
function tags(text, service) {
  const found = { service };
  for (const one of text.split(',').map((part) => part.trim()).filter(Boolean)) {
    const equals = one.indexOf('=');
    const [name, value] = [one.slice(0, equals).trim(), one.slice(equals + 1).trim()];
    if (equals < 1 || name === 'service') fail(`the parameter tags has '${one}': give name=value, and not the name service`);
    if (!TAG.test(name) || !TAG.test(value) || name.length > 128 || value.length > 256 || /^aws:/i.test(name)) {
      fail(`the parameter tags has '${one}', which is not an AWS tag: give letters, numbers, spaces and _.:/=+-@`);
    }
    found[name] = value;
  }
  if (Object.keys(found).length > 50) fail('the parameter tags has more than 49 tags: AWS takes 50 of a resource, ours among them');
  return found;
}

/* The target as auditor/lambdas/metrics.py has it in the dimension Target. */
function targetValue({ bucket, prefix }) {
  const path = encodeURIComponent(prefix).replace(/%2F/g, '/');
  return (path ? `${bucket}/${path}` : bucket).slice(0, 1024);
}

/* An alarm for each target that had no complete run for so many hours. */
function silenceAlarms(found, service, kind, metric, hours) {
  const topic = { 'Fn::If': ['MakesTopic', { Ref: 'AlertTopic' }, { Ref: 'TopicArn' }] };
  const made = (hours ? found : []).map((one) => {
    const value = targetValue(one);
    const id = crypto.createHash('sha256').update(value).digest('hex').slice(0, 12);
    return [`No${kind[0].toUpperCase()}${kind.slice(1)}Alarm${id}`, {
      Type: 'AWS::CloudWatch::Alarm',
      Properties: {
        AlarmName: `${service}-no-${kind}-${one.bucket}${one.prefix ? `-${id}` : ''}`,
        AlarmDescription: `No ${kind} of ${value} was complete for ${hours} hours`.slice(0, 1024),
        Namespace: 'S3Auditor',
        MetricName: metric,
        Dimensions: [{ Name: 'Service', Value: service }, { Name: 'Target', Value: value }],
        Statistic: 'Sum',
        Period: 3600,
        EvaluationPeriods: hours,
        Threshold: 1,
        ComparisonOperator: 'LessThanThreshold',
        TreatMissingData: 'breaching',
        AlarmActions: [topic],
      },
    }];
  });
  return { Resources: Object.fromEntries(made) };
}

/* The text of the state machine, in one line: spaces count as the template's bytes, too. Each task has the retries of the
   file. It outlasts its function, and a run that is taken is asked for until its claim ends. Verifications are of the level
   fixity. In place of the reader of the list the text has the variable Items. moto takes no percentage without a point. */
function machineDefinition({ level, auditTimeout, verifyTimeout }) {
  const { Retry: retries, ...made } = JSON.parse(fs.readFileSync(path.join(__dirname, 'machine', 'audit.asl.json'), 'utf8'));
  if (level !== 'fixity') {
    made.StartAt = 'Begin';
    for (const name of ['Kind', 'Verify', 'IsVerified', 'VerifyOn', 'Verified']) delete made.States[name];
  }
  const text = JSON.stringify(made, (name, value) => {
    if (value?.Type !== 'Task') return value;
    const timeout = value.Parameters.FunctionName.includes('Verify') ? verifyTimeout : auditTimeout;
    const Retry = retries.map((one) => (
      one.ErrorEquals[0] === 'RunTaken' ? { ...one, MaxAttempts: Math.ceil((timeout + 300) / one.IntervalSeconds) } : one
    ));
    return { ...value, Resource: 'arn:${AWS::Partition}:states:::lambda:invoke', TimeoutSeconds: timeout + 60, Retry };
  });
  const reader = JSON.stringify({ ItemReader: made.States.Ranges.ItemReader }).slice(1, -1);
  return {
    machineDefinition: text.replace(reader, () => '${Items}').replace('"ToleratedFailurePercentage":100', '$&.0'),
    machineReader: reader,
  };
}

/* The state machine by its name, because it names the functions, which name it, as their roles do. */
function machine(service, checked) {
  const ofMachine = (kind, more) => ({ 'Fn::Sub': `arn:\${AWS::Partition}:states:\${AWS::Region}:\${AWS::AccountId}:${kind}:${service}-audit${more}` });
  const [stateMachine, executions] = [ofMachine('stateMachine', ''), ofMachine('execution', ':*')];
  const functions = checked.level === 'fixity' ? ['Audit', 'Verify'] : ['Audit'];
  return {
    ...machineDefinition(checked),
    stateMachine,
    machineFunctions: functions.map((name) => ({ 'Fn::GetAtt': [`${name}LambdaFunction`, 'Arn'] })),
    machineExecutions: [executions, ofMachine('execution', '/Ranges:*')],
    machineStatement: {
      Sid: 'Machine',
      Effect: 'Allow',
      Action: ['states:DescribeExecution', 'states:StartExecution'],
      Resource: [stateMachine, executions],
    },
  };
}

/* A layer lies beside the functions' own package. */
function layer(checked, name, description, artifact) {
  return {
    name,
    description,
    package: { artifact },
    compatibleRuntimes: [checked.runtime],
    compatibleArchitectures: [checked.architecture],
  };
}

/* What all functions depend on, and what the audit alone reads Parquet by. */
function layers(checked, service) {
  const bundled = checked.dependencies === 'bundled';
  const dependencies = layer(checked, `${service}-dependencies`, 'What the functions of the S3 auditor depend on', checked.artifact.replace('.zip', '-layer.zip'));
  const parquet = layer(checked, `${service}-parquet`, 'DuckDB, with which the S3 auditor reads Parquet', checked.artifact.replace('function-', 'parquet-'));
  const shared = bundled ? [] : [{ Ref: 'DependenciesLambdaLayer' }];
  return {
    layers: { ...(bundled ? {} : { dependencies }), ...(checked.parquet === 'true' ? { parquet } : {}) },
    layersOfFunctions: shared,
    layersOfAudit: [...shared, ...(checked.parquet === 'true' ? [{ Ref: 'ParquetLambdaLayer' }] : [])],
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
  checked.mapConcurrency = atOnce(values.mapConcurrency);
  choice('level', values.level, LEVELS);
  choice('runtime', values.runtime, ['python3.13', 'python3.14']);
  if (choice('engines', values.engines, ['default', 'all']) === 'default' && values.engine === 'aioboto3') {
    fail("the parameter engine is 'aioboto3', which the functions do not have: give engines=all too");
  }
  const architecture = choice('architecture', values.architecture, ARCHITECTURES);
  checked.artifact = `.build/function-${architecture === 'host' ? 'local' : architecture}.zip`;
  checked.architecture = architecture === 'host' ? HOST : architecture;
  if (choice('keyPolicies', values.keyPolicies, ['true', 'false']) === 'true' && values.level === 'exposure') {
    fail("the parameter keyPolicies is 'true', and at the level exposure no HEAD names a key: give level=metadata or level=fixity");
  }
  choice('dependencies', values.dependencies, ['bundled', 'layer']);
  const service = `${await resolveVariable('self:service')}-${await resolveVariable('sls:stage')}`;
  Object.assign(checked, machine(service, checked));
  Object.assign(checked, layers(checked, service));
  if (values.ledger && !TABLE.test(values.ledger)) {
    fail(`the parameter ledger is '${values.ledger}': give the name or the ARN of a DynamoDB table`);
  }
  if (values.chatTopic && (!TOPIC.test(values.chatTopic) || values.chatTopic === values.topic)) {
    fail(`the parameter chatTopic is '${values.chatTopic}': give the ARN of an SNS topic, and another one than topic`);
  }
  if (values.eventBus && !BUS.test(values.eventBus)) {
    fail(`the parameter eventBus is '${values.eventBus}': give the ARN of an event bus`);
  }
  for (const key of values.auditedKeys.split(',').filter(Boolean)) keyRegion('auditedKeys', key.trim());
  const region = await resolveVariable('self:provider.region');
  if (values.kmsKey && keyRegion('kmsKey', values.kmsKey) !== region) {
    fail(`the parameter kmsKey is '${values.kmsKey}': give a key of the stack's region, ${region}`);
  }
  checkFiles(values, region);
  Object.assign(checked, inventory(values, checked.auditMemory));
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
  // Six times the function's timeout (Lambda Developer Guide, "Using Lambda with Amazon SQS").
  checked.visibilityTimeout = 6 * checked.hashingTimeout;
  checked.tags = tags(values.tags, service);
  if (values.deploymentBucket && !BUCKET.test(values.deploymentBucket)) {
    fail(`the parameter deploymentBucket is '${values.deploymentBucket}': give the name of a bucket`);
  }
  checked.deploymentBucket = values.deploymentBucket ? { name: values.deploymentBucket } : { blockPublicAccess: true };
  if (values.serviceRole && !ROLE.test(values.serviceRole)) {
    fail(`the parameter serviceRole is '${values.serviceRole}': give the ARN of a role`);
  }
  checked.iam = values.serviceRole ? { deploymentRole: values.serviceRole } : {};
  const uris = listed(values.buckets);
  const every = everyBucket(uris, values);
  const found = every ? [] : uris.map(target);
  const buckets = [...new Set(found.map(({ bucket }) => bucket))];
  const packed = uris.join(',').length > LONGEST_VARIABLE;
  checked.packedBuckets = packed ? uris : [];
  checked.bucketsVariable = packed ? '' : uris.join(',');
  if (packed) checked.configFile = 'auditor.toml';
  const named = every && !values.roleBuckets ? ['*'] : patterns(values.roleBuckets, buckets);
  checked.bucketArns = (named.length ? named : buckets).map(arn);
  checked.objectArns = named.length
    ? named.map((one) => arn(`${one}/*`))
    : found.map(({ bucket, prefix }) => arn(`${bucket}/${literal(prefix)}*`));
  const account = { 'Fn::If': ['BucketsAreOurs', { Ref: 'AWS::AccountId' }, { Ref: 'BucketAccount' }] };
  checked.roleCondition = named.length ? { StringEquals: { 's3:ResourceAccount': account } } : { Ref: 'AWS::NoValue' };
  const watched = choice('bucketAlarms', values.bucketAlarms, ['true', 'false']) === 'true' ? found : [];
  checked.auditAlarms = silenceAlarms(watched, service, 'audit', 'RunsComplete', checked.silentHours);
  // The roles' condition, where roles are of patterns: a template must not have one that it does not use.
  if (named.length) checked.auditAlarms.Conditions = { BucketsAreOurs: { 'Fn::Equals': [{ Ref: 'BucketAccount' }, ''] } };
  const verified = [service, 'verification', 'VerificationsComplete', checked.verifySilentHours];
  checked.verifyAlarms = silenceAlarms(watched, ...verified);
  checked.verifyWatched = checked.verifySilentHours > 0;
  checked.verifySilentHours ||= 1; // CloudWatch takes no alarm of no hours; this one then tells nobody
  checked.eventRules = eventRules(found, service);
  const rules = ['ObjectEventsRule', ...Object.keys(checked.eventRules.more.Resources)];
  checked.eventRuleArns = rules.map((rule) => ({ 'Fn::GetAtt': [rule, 'Arn'] }));
  Object.assign(checked, renewals(values, checked.renewRate, found, every, service));
  return checked;
};
