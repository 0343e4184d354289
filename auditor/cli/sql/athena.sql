-- The tables of all runs below s3://REPORTS/audits for Athena: an ACL that was not read stays apart from one without grants.
-- Each query names a bucket and a run:
--   WHERE bucket = 'my-bucket' AND run = '20260102T030405Z-0a1b2c'
CREATE DATABASE IF NOT EXISTS auditor;

CREATE EXTERNAL TABLE IF NOT EXISTS auditor.objects (
  `key` string COMMENT 'the key as S3 holds it',
  `prefix1` string COMMENT 'the key up to its first slash, with the slash, or empty',
  `version_id` string COMMENT 'null unless the run looked at versions',
  `etag` string COMMENT 'without quotes',
  `size` bigint COMMENT 'bytes',
  `last_modified` string COMMENT 'ISO 8601 in UTC',
  `storage_class` string COMMENT 'such as STANDARD',
  `owner` string COMMENT 'canonical ID of the owner of the object, null if unknown',
  `acl_state` string COMMENT 'read, unread or skipped: only with read does acl have grants',
  `public_grant` boolean COMMENT 'the ACL has a grant to everyone or to any account, null if the ACL was not read',
  `acl` struct<owner:string,grants:array<struct<grantee:string,permission:string>>,unread:struct<action:string,code:string>,skipped:string> COMMENT 'owner and grants, or unread (action, code), or skipped (the reason)',
  `head_state` string COMMENT 'read, partial, unread or skipped: with partial, a null in head may be a member that was not read',
  `head` struct<etag:string,content_length:bigint,last_modified:string,content_type:string,content_encoding:string,content_disposition:string,content_language:string,cache_control:string,expires:string,metadata:string,missing_meta:bigint,version_id:string,storage_class:string,server_side_encryption:string,sse_kms_key_id:string,bucket_key_enabled:boolean,sse_customer_algorithm:string,checksum_type:string,checksum_crc32:string,checksum_crc32c:string,checksum_crc64nvme:string,checksum_sha1:string,checksum_sha256:string,checksum_sha512:string,checksum_md5:string,checksum_xxhash64:string,checksum_xxhash3:string,checksum_xxhash128:string,website_redirect_location:string,replication_status:string,parts_count:bigint,tag_count:bigint,object_lock_mode:string,object_lock_retain_until_date:string,object_lock_legal_hold_status:string,object_lock_event_hold:string,object_lock_event_hold_duration_days:bigint,object_lock_event_hold_duration_years:bigint,restore:string,archive_status:string,expiration:string,unread:struct<action:string,code:string>,skipped:string> COMMENT 'the members of HeadObject, or unread, or skipped: metadata is JSON',
  `outcome` string COMMENT 'audited, vanished or undecided',
  `changed` boolean COMMENT 'overwritten between listing and reading',
  `public` boolean COMMENT 'anyone or any account can reach it, null if that is unknown, or vanished',
  `verdict` string COMMENT 'exposed, unknown, shared, masked, dormant or private, null if vanished',
  `rules` array<string> COMMENT 'IDs of the rules that found something',
  `hashed` boolean COMMENT 'a digest is known, null without a ledger',
  `latest` boolean COMMENT 'false for a version that is not the current one of its key',
  `audience` array<string> COMMENT 'each audience that gets in, such as anyone',
  `reasons` array<string> COMMENT 'the facts that decided',
  `since` string COMMENT 'start of the first run of the unbroken series in which it was at least this open',
  `exception` string COMMENT 'ID of the exception that covers the verdict',
  `read_at` struct<acl:string,head:string,acl_from:string,head_from:string> COMMENT 'when acl or head was read and by which earlier source, null if all was read along with the listing',
  `dormant` struct<acl:struct<owner:string,grants:array<struct<grantee:string,permission:string>>>,at:string> COMMENT 'grants that are stored and hidden today, and at, the time of the S3 Inventory that shows them'
)
COMMENT 'a row for each listed object'
PARTITIONED BY (`bucket` string COMMENT 'the audited bucket', `run` string COMMENT 'ID of the run')
ROW FORMAT SERDE 'org.openx.data.jsonserde.JsonSerDe'
WITH SERDEPROPERTIES ('ignore.malformed.json' = 'false')
LOCATION 's3://REPORTS/audits/'
TBLPROPERTIES (
  'projection.enabled' = 'true',
  'projection.bucket.type' = 'injected',
  'projection.run.type' = 'injected',
  'storage.location.template' = 's3://REPORTS/audits/bucket=${bucket}/run=${run}/objects/'
);

CREATE EXTERNAL TABLE IF NOT EXISTS auditor.findings (
  `fingerprint` string COMMENT 'the same from run to run',
  `rule` string COMMENT 'ID of the rule',
  `severity` string COMMENT 'critical, high, medium, low or info',
  `key` string COMMENT 'null for a finding on the bucket itself',
  `version_id` string COMMENT 'null unless the run looked at versions',
  `grantee` string COMMENT 'of the grant, null for a finding without a grant',
  `permission` string COMMENT 'of the grant',
  `message` string COMMENT 'the finding in words',
  `verdict` string COMMENT 'of the object, null for the bucket',
  `since` string COMMENT 'start of the first run of the unbroken series that has the finding',
  `exception` string COMMENT 'ID of the exception that covers the finding'
)
COMMENT 'a row for each finding of a rule'
PARTITIONED BY (`bucket` string COMMENT 'the audited bucket', `run` string COMMENT 'ID of the run')
ROW FORMAT SERDE 'org.openx.data.jsonserde.JsonSerDe'
WITH SERDEPROPERTIES ('ignore.malformed.json' = 'false')
LOCATION 's3://REPORTS/audits/'
TBLPROPERTIES (
  'projection.enabled' = 'true',
  'projection.bucket.type' = 'injected',
  'projection.run.type' = 'injected',
  'storage.location.template' = 's3://REPORTS/audits/bucket=${bucket}/run=${run}/findings/'
);

CREATE EXTERNAL TABLE IF NOT EXISTS auditor.undecided (
  `key` string COMMENT 'the key as S3 holds it',
  `version_id` string COMMENT 'null unless the run looked at versions',
  `unread` array<struct<action:string,code:string>> COMMENT 'the facts that could not be read: action and code of each',
  `rules` array<string> COMMENT 'IDs of the rules that lacked a fact'
)
COMMENT 'a row for each object with a fact that could not be read'
PARTITIONED BY (`bucket` string COMMENT 'the audited bucket', `run` string COMMENT 'ID of the run')
ROW FORMAT SERDE 'org.openx.data.jsonserde.JsonSerDe'
WITH SERDEPROPERTIES ('ignore.malformed.json' = 'false')
LOCATION 's3://REPORTS/audits/'
TBLPROPERTIES (
  'projection.enabled' = 'true',
  'projection.bucket.type' = 'injected',
  'projection.run.type' = 'injected',
  'storage.location.template' = 's3://REPORTS/audits/bucket=${bucket}/run=${run}/undecided/'
);
