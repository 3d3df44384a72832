//! Files, connections and their settings, and the tables.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use super::error::failed;
use crate::store::StoreError;

/// How long to wait for another process's transaction.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Older versions can lose events when the log restarts (sqlite.org/wal.html, the WAL-reset bug).
const OLDEST_SQLITE: i32 = 3_051_003;

/// How much of the log stays on disk, ready to be overwritten.
pub(super) const LOG_KEPT: u64 = 24 * 1024 * 1024;

/// How much of the file a reading connection caches, in KiB as SQLite wants it: events are read once, and
/// the system caches them too.
const READER_CACHE: i32 = -512;

/// `PRAGMA synchronous` when it is `FULL`.
const FULL: u32 = 2;

/// Each one migrates the tables from the version that is its index to the next.
const MIGRATIONS: &[&str] = &[
    include_str!("schema_1.sql"),
    include_str!("schema_2.sql"),
    include_str!("schema_3.sql"),
    include_str!("schema_4.sql"),
];

/// Creates the directory and the database if needed, and opens the writing connection. A database that is
/// already set up is opened without any lock: another process may hold it for any length of time.
pub(super) fn open(directory: &Path) -> Result<(PathBuf, PathBuf, Connection), StoreError> {
    if rusqlite::version_number() < OLDEST_SQLITE {
        return Err(StoreError::Failed(format!(
            "failed to open the store: SQLite {} can lose events; build agentwire with 3.51.3 or newer",
            rusqlite::version()
        )));
    }
    if let Some(opened) = set_up(directory)? {
        return Ok(opened);
    }
    let (directory, turn) = make(directory).map_err(|error| {
        StoreError::Failed(format!(
            "failed to create the data directory {}: {error}; choose another with AGENTWIRE_DATA_DIR",
            directory.display()
        ))
    })?;
    let path = directory.join("agentwire.db");
    make_file(&path, &turn).map_err(|error| {
        StoreError::Failed(format!(
            "failed to open {}: {error}; make it readable and writable for you, or choose another data \
             directory with AGENTWIRE_DATA_DIR",
            path.display()
        ))
    })?;
    let connection = writer(&path)?;
    drop(turn);
    Ok((directory, path, connection))
}

/// Opens a database that has all its tables. `None` if there is something to set up, or an error to report.
fn set_up(directory: &Path) -> Result<Option<(PathBuf, PathBuf, Connection)>, StoreError> {
    let Ok(directory) = directory.canonicalize() else { return Ok(None) };
    let path = directory.join("agentwire.db");
    if length(&path) == 0 {
        return Ok(None);
    }
    let Ok(connection) = connect(&path) else { return Ok(None) };
    let journal =
        connection.pragma_query_value(None, "journal_mode", |row| row.get::<_, String>(0));
    let is_ready = journal.is_ok_and(|journal| journal == "wal")
        && version(&connection).is_ok_and(|found| found == MIGRATIONS.len());
    if !is_ready {
        return Ok(None);
    }
    configure(&connection, &path)?;
    Ok(Some((directory, path, connection)))
}

pub(super) fn reader(path: &Path) -> Result<Connection, rusqlite::Error> {
    let connection = connect(path)?;
    connection.pragma_update(None, "query_only", true)?;
    connection.pragma_update(None, "cache_size", READER_CACHE)?;
    opened(connection)
}

pub(super) fn copier(path: &Path) -> Result<Connection, rusqlite::Error> {
    let connection = connect(path)?;
    // What it writes is durable before the log may restart.
    connection.pragma_update(None, "synchronous", FULL)?;
    connection.pragma_update(None, "fullfsync", true)?;
    opened(connection)
}

/// The file of the write-ahead log, which the database's connections have made.
pub(super) fn log(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).open(log_path(path))
}

/// Reads once, so that SQLite opens all files of the database now and none by its path later.
fn opened(connection: Connection) -> Result<Connection, rusqlite::Error> {
    connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
    Ok(connection)
}

pub(super) fn log_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push("-wal");
    name.into()
}

/// The length of a file; 0 if it does not exist.
pub(super) fn length(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |file| file.len())
}

/// The directory as an absolute path (SQLite would take `file:` for a URI), and the lock for the setup: a
/// process that holds the directory's lock sets up the database alone.
fn make(directory: &Path) -> io::Result<(PathBuf, File)> {
    let made = !directory.exists();
    DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    let directory = directory.canonicalize()?;
    let turn = File::open(&directory)?;
    turn.lock()?;
    if made && let Some(parent) = directory.parent() {
        File::open(parent)?.sync_all()?;
    }
    Ok((directory, turn))
}

/// The file of the database in its directory.
fn make_file(path: &Path, directory: &File) -> io::Result<()> {
    // SQLite gives the files it makes beside it the same mode.
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
    directory.sync_all()
}

fn connect(path: &Path) -> Result<Connection, rusqlite::Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    Ok(connection)
}

fn writer(path: &Path) -> Result<Connection, StoreError> {
    let error = failed("open the store");
    let mut connection = connect(path).map_err(&error)?;
    connection.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(())).map_err(&error)?;
    configure(&connection, path)?;
    let found = migrate(&mut connection).map_err(&error)?;
    if found > MIGRATIONS.len() {
        return Err(refused(
            path,
            &format!(
                "a newer agentwire wrote it (tables of version {found}, this one supports {}); upgrade \
                 agentwire or choose another AGENTWIRE_DATA_DIR",
                MIGRATIONS.len()
            ),
        ));
    }
    Ok(connection)
}

/// The settings of the writing connection. None of them takes a lock.
fn configure(connection: &Connection, path: &Path) -> Result<(), StoreError> {
    let error = failed("open the store");
    connection.pragma_update(None, "synchronous", FULL).map_err(&error)?;
    let journal: String =
        connection.pragma_query_value(None, "journal_mode", |row| row.get(0)).map_err(&error)?;
    let synchronous: u32 =
        connection.pragma_query_value(None, "synchronous", |row| row.get(0)).map_err(&error)?;
    if journal != "wal" || synchronous != FULL {
        return Err(refused(
            path,
            &format!(
                "events would not be durable (journal_mode is {journal}, synchronous \
                 {synchronous}); put the data directory on a local disk"
            ),
        ));
    }
    // On macOS an ordinary sync does not reach the disk.
    connection.pragma_update(None, "fullfsync", true).map_err(&error)?;
    connection
        .pragma_update_and_check(None, "journal_size_limit", LOG_KEPT, |_| Ok(()))
        .map_err(&error)
}

fn refused(path: &Path, why: &str) -> StoreError {
    StoreError::Failed(format!("failed to open {}: {why}", path.display()))
}

fn version(connection: &Connection) -> Result<usize, rusqlite::Error> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// Brings the tables up to date and returns the version that was found.
fn migrate(connection: &mut Connection) -> Result<usize, rusqlite::Error> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let found = version(&transaction)?;
    for migration in MIGRATIONS.iter().skip(found) {
        transaction.execute_batch(migration)?;
    }
    if found < MIGRATIONS.len() {
        transaction.pragma_update(None, "user_version", MIGRATIONS.len())?;
    }
    transaction.commit()?;
    Ok(found)
}
