//! Checks the data directory: permissions, store, disk space, leftovers.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use agentwire_protocol::SessionState;
use agentwire_protocol::shell::quoted;
use agentwire_sessions::owner;
use agentwire_sessions::settings::StoreKind;
use agentwire_sessions::store::sqlite::Sqlite;
use agentwire_sessions::store::{Filter, Store as _};

use super::Check;
use crate::format;
use crate::print::Progress;
use crate::settings::Loaded;

/// Less free space than this is a warning.
const SCARCE: u64 = 1 << 30;

/// Less free space than this is a failure.
const TOO_LITTLE: u64 = 64 << 20;

/// `PRAGMA synchronous` when it is `FULL`.
const FULL: u32 = 2;

pub(super) fn check(loaded: &Loaded, checks: &mut Vec<Check>) {
    for (name, path) in loaded.projects.iter().filter(|(_, path)| !path.is_dir()) {
        checks.push(Check::warn(
            "projects",
            format!("{} is not a directory", path.display()),
            format!("fix {name} in [projects]"),
        ));
    }
    let data_dir = &loaded.engine.data_dir;
    match loaded.engine.store {
        StoreKind::Memory => {
            checks.push(Check::ok("store", "memory: sessions are lost when agentwire exits"));
            return;
        }
        StoreKind::Sqlite => {}
    }
    // First, because opening the store removes stale locks.
    let (alive, stale) = owners(data_dir);
    let opened = store(data_dir);
    let works = opened.is_ok();
    checks.push(directory(data_dir));
    checks.push(opened.unwrap_or_else(|check| check));
    if works {
        events(data_dir, checks);
        checks.push(room(data_dir));
        checks.push(locks(alive, stale));
        checks.push(leftovers(data_dir, alive));
    }
}

fn directory(path: &Path) -> Check {
    let name = "data directory";
    let choose = "choose another with --data-dir or AGENTWIRE_DATA_DIR";
    let shown = path.display();
    let metadata = match path.metadata() {
        Ok(metadata) => metadata,
        Err(error) => return Check::fail(name, format!("failed to open {shown}: {error}"), choose),
    };
    // Only a write can tell: permissions, read-only disks and quotas all matter.
    if let Err(error) = tempfile::tempfile_in(path) {
        return Check::fail(name, format!("failed to write to {shown}: {error}"), choose);
    }
    let mode = metadata.permissions().mode() & 0o777;
    if mode & 0o022 != 0 {
        return Check::fail(
            name,
            format!("other users can write to {shown} (mode {mode:o})"),
            format!("`chmod 700 {}`", quoted(&shown.to_string())),
        );
    }
    if mode & 0o077 != 0 {
        return Check::warn(
            name,
            format!("other users can access {shown} (mode {mode:o})"),
            format!("`chmod 700 {}`", quoted(&shown.to_string())),
        );
    }
    Check::ok(name, format!("{shown}, accessible only to you"))
}

fn store(data_dir: &Path) -> Result<Check, Check> {
    let name = "store";
    let fix = "if the file is damaged, move it away; otherwise resolve the error";
    let failed = |error: &dyn std::fmt::Display| Check::fail(name, error.to_string(), fix);
    let store = Sqlite::open(data_dir).map_err(|error| failed(&error))?;
    let status = store.status().map_err(|error| failed(&error))?;
    let durable = status.journal_mode == "wal" && status.synchronous == FULL;
    let text = format!(
        "SQLite {}, journal {}, synchronous {}, {} used and {} free in {}",
        status.sqlite,
        status.journal_mode,
        status.synchronous,
        format::bytes(status.bytes.saturating_sub(status.free_bytes) + status.log_bytes),
        format::bytes(status.free_bytes),
        status.path.display(),
    );
    if !durable {
        return Err(Check::fail(name, text, "put the data directory on a local disk"));
    }
    let sessions = store.sessions(&Filter::default()).map_err(|error| failed(&error))?;
    let running = sessions.iter().filter(|record| record.summary.state != SessionState::Ended);
    Ok(Check::ok(
        name,
        format!(
            "{}, {} running; {text}",
            format::count(sessions.len() as u64, "session"),
            running.count()
        ),
    ))
}

/// Reads the whole store. Each damaged or missing range is its own check.
fn events(data_dir: &Path, checks: &mut Vec<Check>) {
    let name = "events";
    let mut progress = Progress::before_the_answer();
    let checked = Sqlite::open(data_dir).and_then(|store| {
        store.check(&mut |done, all| progress.show(&format!("{done} of {all} sessions checked")))
    });
    progress.clear();
    let checked = match checked {
        Ok(checked) => checked,
        Err(error) => {
            let fix = "resolve the error, then run `agentwire doctor` again";
            return checks.push(Check::fail(name, error.to_string(), fix));
        }
    };
    let text = format!(
        "{} of {} read",
        format::count(checked.events, "event"),
        format::count(checked.sessions, "session")
    );
    if checked.damage.is_empty() {
        return checks.push(Check::ok(name, format!("{text}, none damaged or missing")));
    }
    let fix = "check the disk, then restore agentwire.db from a backup; everything else can still be read, and \
               exported with `agentwire export`";
    let places = format::count(checked.damage.len() as u64, "place");
    let lost = checked.lost();
    let damage = format!("{text}; damage in {places}, {} lost", format::count(lost, "event"));
    checks.push(Check::fail(name, damage, fix));
    let all = checked.damage.iter();
    checks.extend(
        all.map(|damage| Check { fix: None, ..Check::fail("damage", damage.to_string(), fix) }),
    );
}

fn room(data_dir: &Path) -> Check {
    let name = "disk";
    let fix = "free some space, or run `agentwire prune`";
    let free = match rustix::fs::statvfs(data_dir) {
        Ok(disk) => disk.f_bavail.saturating_mul(disk.f_frsize),
        Err(error) => {
            let text = format!("failed to check the disk: {error}");
            return Check::warn(name, text, "check that the disk is mounted");
        }
    };
    let text = format!("{} free", format::bytes(free));
    match free {
        0..TOO_LITTLE => Check::fail(name, text, fix),
        TOO_LITTLE..SCARCE => Check::warn(name, text, fix),
        SCARCE.. => Check::ok(name, text),
    }
}

/// How many live processes run sessions there, and how many stale locks were removed.
fn owners(data_dir: &Path) -> (usize, usize) {
    let entries = fs::read_dir(data_dir.join("owners")).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| {
        let path = entry.path();
        let is_lock = path.extension().is_some_and(|extension| extension == "lock");
        path.file_stem().filter(|_| is_lock)?.to_str().map(str::to_owned)
    });
    let (alive, stale): (Vec<_>, Vec<_>) = names.partition(|name| owner::is_alive(data_dir, name));
    (alive.len(), stale.len())
}

fn locks(alive: usize, stale: usize) -> Check {
    let name = "owners";
    let processes = if alive == 1 { "process" } else { "processes" };
    let alive = format!("{alive} other agentwire {processes} running");
    if stale == 0 {
        return Check::ok(name, format!("{alive}, no stale locks"));
    }
    Check::ok(
        name,
        format!(
            "{alive}; removed {}, the next command closes their sessions",
            format::count(stale as u64, "stale lock")
        ),
    )
}

/// Files for agents' processes that outlived agentwire.
fn leftovers(data_dir: &Path, alive: usize) -> Check {
    let name = "runtime files";
    let directory = data_dir.join("run");
    let left = fs::read_dir(&directory).into_iter().flatten().count();
    match (left, alive) {
        (0, _) => Check::ok(name, "none left over"),
        (left, 0) => Check::warn(
            name,
            format!("{} left by a killed agentwire", format::count(left as u64, "folder")),
            format!("`rm -r {}/*`", directory.display()),
        ),
        (left, _) => Check::ok(name, format!("{left} in use")),
    }
}
