BEGIN TRANSACTION;
CREATE TABLE digests (
    bucket TEXT NOT NULL,
    key BLOB NOT NULL,
    etag TEXT NOT NULL,
    version_id TEXT NOT NULL,
    algorithm TEXT NOT NULL,
    size INTEGER NOT NULL,
    digest TEXT NOT NULL,
    hashed_at TEXT NOT NULL, source TEXT NOT NULL DEFAULT 'auditor', verified_at TEXT, bytes_read INTEGER NOT NULL DEFAULT 0, seal TEXT,
    PRIMARY KEY (bucket, key, etag, version_id, algorithm)
) WITHOUT ROWID
;
INSERT INTO "digests" VALUES('bucket',X'612F6B6579','etag','v1','sha256',5,'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa','2026-01-02T03:04:05Z','auditor','2026-02-03T04:05:06Z',5,'1158fc8261b2f4f962d5dcfc7b84fea4');
CREATE TABLE expectations (
    bucket TEXT NOT NULL,
    key BLOB NOT NULL,
    algorithm TEXT NOT NULL,
    origin TEXT NOT NULL,
    digest TEXT NOT NULL,
    size INTEGER,
    imported_at TEXT NOT NULL,
    PRIMARY KEY (bucket, key, algorithm, origin)
) WITHOUT ROWID
;
CREATE TABLE history (
    place INTEGER PRIMARY KEY AUTOINCREMENT,
    bucket TEXT NOT NULL,
    key BLOB NOT NULL,
    line BLOB NOT NULL,
    at TEXT NOT NULL,
    what TEXT NOT NULL,
    version_id TEXT,
    etag TEXT,
    size INTEGER,
    detail TEXT NOT NULL, seal TEXT,
    UNIQUE (bucket, key, line)
);
INSERT INTO "history" VALUES(1,'bucket',X'612F6B6579',X'368EC186C037BEFC694F0AFEFD82D2AD','2026-01-02T03:04:05Z','recorded','v1','etag',5,'{"algorithm":"sha256","bytes_read":"5","digest":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa","source":"auditor"}','cae89b666855efe699e1aeb81811fe71');
INSERT INTO "history" VALUES(2,'bucket',X'612F6B6579',X'D235A8EC971620ED0D70314E18EA5FAB','2026-02-03T04:05:06Z','verified','v1','etag',5,'{"algorithm":"sha256","digest":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa","origin":"ledger"}','a96188c1520f0762eeb8935093ddf443');
CREATE TABLE leases (
    work TEXT PRIMARY KEY,
    bucket TEXT NOT NULL,
    key BLOB NOT NULL,
    owner TEXT,
    until REAL NOT NULL,
    fence INTEGER NOT NULL,
    hops INTEGER NOT NULL,
    checkpoint TEXT
) WITHOUT ROWID
;
CREATE TABLE notices (
    bucket TEXT NOT NULL,
    key BLOB NOT NULL,
    sequencer TEXT NOT NULL,
    deleted INTEGER NOT NULL,
    at TEXT NOT NULL,
    version_id TEXT,
    PRIMARY KEY (bucket, key)
) WITHOUT ROWID
;
CREATE TABLE versions (
    bucket TEXT NOT NULL,
    key BLOB NOT NULL,
    etag TEXT NOT NULL,
    version_id TEXT NOT NULL,
    first_seen TEXT,
    recorded_place INTEGER,
    told_place INTEGER,
    sequencer TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (bucket, key, etag, version_id)
) WITHOUT ROWID
;
INSERT INTO "versions" VALUES('bucket',X'612F6B6579','etag','v1','2026-01-02T03:04:05Z',1,NULL,'');
CREATE TRIGGER history_holds_each_line_once BEFORE INSERT ON history
WHEN EXISTS (SELECT 1 FROM history WHERE place = NEW.place)
    OR EXISTS (SELECT 1 FROM history WHERE bucket = NEW.bucket AND key = NEW.key AND line = NEW.line)
BEGIN SELECT RAISE(IGNORE); END;
CREATE TRIGGER history_is_never_changed BEFORE UPDATE ON history
BEGIN SELECT RAISE(ABORT, 'the history is only added to'); END;
CREATE TRIGGER history_is_never_deleted BEFORE DELETE ON history
BEGIN SELECT RAISE(ABORT, 'the history is only added to'); END;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('history',2);
COMMIT;
PRAGMA user_version = 3;
