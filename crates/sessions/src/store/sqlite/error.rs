//! What SQLite says, in the words of a store.

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
            // Also what a used-up quota or a disk that went away looks like.
            Some(ErrorCode::SystemIoFailure) => {
                StoreError::Full(format!("{text}; check the disk that holds the data directory"))
            }
            Some(
                ErrorCode::DatabaseBusy
                | ErrorCode::DatabaseLocked
                | ErrorCode::FileLockingProtocolFailed,
            ) => {
                StoreError::Busy(format!("{text}; another process holds it, agentwire tries again"))
            }
            // The file is there, since it was opened at the start: descriptors have run out.
            Some(ErrorCode::CannotOpen) => StoreError::Busy(format!(
                "{text}; too many files may be open, agentwire tries again"
            )),
            _ => StoreError::Failed(text),
        }
    }
}

/// Whether this is about what is stored there, not about getting at it: other rows can be read still.
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

/// What was read; none if it is damaged.
pub(super) fn sound<T>(read: Result<T, rusqlite::Error>) -> Result<Option<T>, rusqlite::Error> {
    match read {
        Ok(found) => Ok(Some(found)),
        Err(error) if is_damage(&error) => Ok(None),
        Err(error) => Err(error),
    }
}
