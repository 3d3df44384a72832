//! Turns SQLite's errors into those of a store.

use rusqlite::ErrorCode;

use crate::store::StoreError;

/// The error of a failed attempt to do `what`.
pub(super) fn failed(what: &'static str) -> impl Fn(rusqlite::Error) -> StoreError {
    move |error| {
        let text = format!("failed to {what}: {error}");
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => {
                StoreError::Full(format!("{text}; free some disk space or delete sessions"))
            }
            // A used-up quota or a disk that went away looks like this too.
            Some(ErrorCode::SystemIoFailure) => {
                StoreError::Full(format!("{text}; check the disk that holds the data directory"))
            }
            Some(
                ErrorCode::DatabaseBusy
                | ErrorCode::DatabaseLocked
                | ErrorCode::FileLockingProtocolFailed,
            ) => StoreError::Busy(format!(
                "{text}; another process holds the store, agentwire will retry"
            )),
            // The file exists, because it was opened at the start: descriptors have run out.
            Some(ErrorCode::CannotOpen) => StoreError::Busy(format!(
                "{text}; too many files may be open, agentwire will retry"
            )),
            _ => StoreError::Failed(text),
        }
    }
}

/// Whether this is about the stored data, not about access to it: other rows can still be read.
pub(super) fn is_damage(error: &rusqlite::Error) -> bool {
    matches!(
        error,
        rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::IntegralValueOutOfRange(..)
            | rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::Utf8Error(..)
    ) || matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase | ErrorCode::TooBig)
    )
}

/// What was read; `None` if it is damaged.
pub(super) fn sound<T>(read: Result<T, rusqlite::Error>) -> Result<Option<T>, rusqlite::Error> {
    match read {
        Ok(found) => Ok(Some(found)),
        Err(error) if is_damage(&error) => Ok(None),
        Err(error) => Err(error),
    }
}
