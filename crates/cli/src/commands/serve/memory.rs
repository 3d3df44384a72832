//! Returns memory to the system after a peak of load.
//!
//! glibc's allocator has an arena per thread and keeps freed memory there. It reads its settings
//! from the environment before any of our code runs. So the server starts itself once more, as the
//! same process. docs/operations.md says what that saves.

use std::os::unix::process::CommandExt as _;
use std::process::Command;

use agentwire_sessions::process::{ALLOCATOR, ALLOCATOR_SET, own_program};

/// Restarts this program with allocator settings that return memory, unless that was done already
/// or the user has their own settings. If it fails, the server runs unchanged.
pub(crate) fn give_back() {
    let is_set = |name: &&str| std::env::var_os(name).is_some();
    let is_glibc = cfg!(all(target_os = "linux", target_env = "gnu"));
    let names = ALLOCATOR.iter().map(|(name, _)| *name);
    if !is_glibc || is_set(&ALLOCATOR_SET) || names.clone().any(|name| is_set(&name)) {
        return;
    }
    let Some(program) = own_program() else { return };
    let mut args = std::env::args_os();
    let mut command = Command::new(program);
    if let Some(name) = args.next() {
        command.arg0(name);
    }
    let error = command.args(args).envs(ALLOCATOR).env(ALLOCATOR_SET, "1").exec();
    tracing::debug!(%error, "failed to restart with other allocator settings");
}
