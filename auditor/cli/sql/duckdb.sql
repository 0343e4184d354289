-- The views of a run for DuckDB, with explicit types: an ACL that was not read stays apart from one without grants.
-- Set the run's folder, a directory or s3://; then .read this file.
-- A run that is not complete has files that do not count: `auditor sql` leaves them out, and this file does not.
SET VARIABLE run = 'RUN';

CREATE OR REPLACE VIEW objects AS SELECT
  * EXCLUDE (filename),
  regexp_extract(filename, '/bucket=([^/]+)/', 1) AS "bucket",
  regexp_extract(filename, '/run=([^/]+)/', 1) AS "run"
FROM read_json(getvariable('run') || '/*/part-*.jsonl.gz', format = 'newline_delimited', compression = 'gzip', maximum_object_size = 1048576, filename = true, hive_partitioning = false, columns = {
    "key": 'VARCHAR',
    "prefix1": 'VARCHAR',
    "version_id": 'VARCHAR',
    "etag": 'VARCHAR',
    "size": 'BIGINT',
    "last_modified": 'VARCHAR',
    "storage_class": 'VARCHAR',
    "owner": 'VARCHAR',
    "acl_state": 'VARCHAR',
    "public_grant": 'BOOLEAN',
    "acl": 'STRUCT("owner" VARCHAR, "grants" STRUCT("grantee" VARCHAR, "permission" VARCHAR)[], "unread" STRUCT("action" VARCHAR, "code" VARCHAR), "skipped" VARCHAR)',
    "head_state": 'VARCHAR',
    "head": 'STRUCT("etag" VARCHAR, "content_length" BIGINT, "last_modified" VARCHAR, "content_type" VARCHAR, "content_encoding" VARCHAR, "content_disposition" VARCHAR, "content_language" VARCHAR, "cache_control" VARCHAR, "expires" VARCHAR, "metadata" JSON, "missing_meta" BIGINT, "version_id" VARCHAR, "storage_class" VARCHAR, "server_side_encryption" VARCHAR, "sse_kms_key_id" VARCHAR, "bucket_key_enabled" BOOLEAN, "sse_customer_algorithm" VARCHAR, "checksum_type" VARCHAR, "checksum_crc32" VARCHAR, "checksum_crc32c" VARCHAR, "checksum_crc64nvme" VARCHAR, "checksum_sha1" VARCHAR, "checksum_sha256" VARCHAR, "checksum_sha512" VARCHAR, "checksum_md5" VARCHAR, "checksum_xxhash64" VARCHAR, "checksum_xxhash3" VARCHAR, "checksum_xxhash128" VARCHAR, "website_redirect_location" VARCHAR, "replication_status" VARCHAR, "parts_count" BIGINT, "tag_count" BIGINT, "object_lock_mode" VARCHAR, "object_lock_retain_until_date" VARCHAR, "object_lock_legal_hold_status" VARCHAR, "object_lock_event_hold" VARCHAR, "object_lock_event_hold_duration_days" BIGINT, "object_lock_event_hold_duration_years" BIGINT, "restore" VARCHAR, "archive_status" VARCHAR, "expiration" VARCHAR, "unread" STRUCT("action" VARCHAR, "code" VARCHAR), "skipped" VARCHAR)',
    "outcome": 'VARCHAR',
    "changed": 'BOOLEAN',
    "public": 'BOOLEAN',
    "verdict": 'VARCHAR',
    "rules": 'VARCHAR[]',
    "hashed": 'BOOLEAN',
    "latest": 'BOOLEAN',
    "audience": 'VARCHAR[]',
    "reasons": 'VARCHAR[]',
    "since": 'VARCHAR',
    "exception": 'VARCHAR',
    "read_at": 'STRUCT("acl" VARCHAR, "head" VARCHAR, "acl_from" VARCHAR, "head_from" VARCHAR)',
    "dormant": 'STRUCT("acl" STRUCT("owner" VARCHAR, "grants" STRUCT("grantee" VARCHAR, "permission" VARCHAR)[]), "at" VARCHAR)'
  })
WHERE contains(filename, '/objects/part-');
COMMENT ON VIEW objects IS 'a row for each listed object';
COMMENT ON COLUMN objects."key" IS 'the key as S3 holds it';
COMMENT ON COLUMN objects."prefix1" IS 'the key up to its first slash, with the slash, or empty';
COMMENT ON COLUMN objects."version_id" IS 'null unless the run looked at versions';
COMMENT ON COLUMN objects."etag" IS 'without quotes';
COMMENT ON COLUMN objects."size" IS 'bytes';
COMMENT ON COLUMN objects."last_modified" IS 'ISO 8601 in UTC';
COMMENT ON COLUMN objects."storage_class" IS 'such as STANDARD';
COMMENT ON COLUMN objects."owner" IS 'canonical ID of the owner of the object, null if unknown';
COMMENT ON COLUMN objects."acl_state" IS 'read, unread or skipped: only with read does acl have grants';
COMMENT ON COLUMN objects."public_grant" IS 'the ACL has a grant to everyone or to any account, null if the ACL was not read';
COMMENT ON COLUMN objects."acl" IS 'owner and grants, or unread (action, code), or skipped (the reason)';
COMMENT ON COLUMN objects."head_state" IS 'read, partial, unread or skipped: with partial, a null in head may be a member that was not read';
COMMENT ON COLUMN objects."head" IS 'the members of HeadObject, or unread, or skipped: metadata is JSON';
COMMENT ON COLUMN objects."outcome" IS 'audited, vanished or undecided';
COMMENT ON COLUMN objects."changed" IS 'overwritten between listing and reading';
COMMENT ON COLUMN objects."public" IS 'anyone or any account can reach it, null if that is unknown, or vanished';
COMMENT ON COLUMN objects."verdict" IS 'exposed, unknown, shared, masked, dormant or private, null if vanished';
COMMENT ON COLUMN objects."rules" IS 'IDs of the rules that found something';
COMMENT ON COLUMN objects."hashed" IS 'a digest is known, null without a ledger';
COMMENT ON COLUMN objects."latest" IS 'false for a version that is not the current one of its key';
COMMENT ON COLUMN objects."audience" IS 'each audience that gets in, such as anyone';
COMMENT ON COLUMN objects."reasons" IS 'the facts that decided';
COMMENT ON COLUMN objects."since" IS 'start of the first run of the unbroken series in which it was at least this open';
COMMENT ON COLUMN objects."exception" IS 'ID of the exception that covers the verdict';
COMMENT ON COLUMN objects."read_at" IS 'when acl or head was read and by which earlier source, null if all was read along with the listing';
COMMENT ON COLUMN objects."dormant" IS 'grants that are stored and hidden today, and at, the time of the S3 Inventory that shows them';
COMMENT ON COLUMN objects."bucket" IS 'the audited bucket';
COMMENT ON COLUMN objects."run" IS 'ID of the run';

CREATE OR REPLACE VIEW findings AS SELECT
  * EXCLUDE (filename),
  regexp_extract(filename, '/bucket=([^/]+)/', 1) AS "bucket",
  regexp_extract(filename, '/run=([^/]+)/', 1) AS "run"
FROM read_json(getvariable('run') || '/*/part-*.jsonl.gz', format = 'newline_delimited', compression = 'gzip', maximum_object_size = 1048576, filename = true, hive_partitioning = false, columns = {
    "fingerprint": 'VARCHAR',
    "rule": 'VARCHAR',
    "severity": 'VARCHAR',
    "key": 'VARCHAR',
    "version_id": 'VARCHAR',
    "grantee": 'VARCHAR',
    "permission": 'VARCHAR',
    "message": 'VARCHAR',
    "verdict": 'VARCHAR',
    "since": 'VARCHAR',
    "exception": 'VARCHAR'
  })
WHERE contains(filename, '/findings/part-');
COMMENT ON VIEW findings IS 'a row for each finding of a rule';
COMMENT ON COLUMN findings."fingerprint" IS 'the same from run to run';
COMMENT ON COLUMN findings."rule" IS 'ID of the rule';
COMMENT ON COLUMN findings."severity" IS 'critical, high, medium, low or info';
COMMENT ON COLUMN findings."key" IS 'null for a finding on the bucket itself';
COMMENT ON COLUMN findings."version_id" IS 'null unless the run looked at versions';
COMMENT ON COLUMN findings."grantee" IS 'of the grant, null for a finding without a grant';
COMMENT ON COLUMN findings."permission" IS 'of the grant';
COMMENT ON COLUMN findings."message" IS 'the finding in words';
COMMENT ON COLUMN findings."verdict" IS 'of the object, null for the bucket';
COMMENT ON COLUMN findings."since" IS 'start of the first run of the unbroken series that has the finding';
COMMENT ON COLUMN findings."exception" IS 'ID of the exception that covers the finding';
COMMENT ON COLUMN findings."bucket" IS 'the audited bucket';
COMMENT ON COLUMN findings."run" IS 'ID of the run';

CREATE OR REPLACE VIEW undecided AS SELECT
  * EXCLUDE (filename),
  regexp_extract(filename, '/bucket=([^/]+)/', 1) AS "bucket",
  regexp_extract(filename, '/run=([^/]+)/', 1) AS "run"
FROM read_json(getvariable('run') || '/*/part-*.jsonl.gz', format = 'newline_delimited', compression = 'gzip', maximum_object_size = 1048576, filename = true, hive_partitioning = false, columns = {
    "key": 'VARCHAR',
    "version_id": 'VARCHAR',
    "unread": 'STRUCT("action" VARCHAR, "code" VARCHAR)[]',
    "rules": 'VARCHAR[]'
  })
WHERE contains(filename, '/undecided/part-');
COMMENT ON VIEW undecided IS 'a row for each object with a fact that could not be read';
COMMENT ON COLUMN undecided."key" IS 'the key as S3 holds it';
COMMENT ON COLUMN undecided."version_id" IS 'null unless the run looked at versions';
COMMENT ON COLUMN undecided."unread" IS 'the facts that could not be read: action and code of each';
COMMENT ON COLUMN undecided."rules" IS 'IDs of the rules that lacked a fact';
COMMENT ON COLUMN undecided."bucket" IS 'the audited bucket';
COMMENT ON COLUMN undecided."run" IS 'ID of the run';
