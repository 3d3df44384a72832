//! Finds the processes that belong to a test.

use std::fs;
use std::path::Path;

/// Processes with this directory in their arguments.
pub(crate) fn naming(directory: &Path) -> Vec<String> {
    let directory = directory.display().to_string();
    all().filter(|process| process.args.contains(&directory)).map(|process| process.args).collect()
}

/// Other processes that work in this directory.
pub(crate) fn working_in(directory: &Path) -> Vec<String> {
    let directory = directory.canonicalize().expect("a directory");
    let works_there = |process: &Process| {
        let cwd = fs::read_link(format!("/proc/{}/cwd", process.pid));
        cwd.is_ok_and(|cwd| cwd.starts_with(&directory))
    };
    let others = all().filter(|process| process.pid.cast_unsigned() != std::process::id());
    others.filter(works_there).map(|Process { pid, args }| format!("{pid} {args}")).collect()
}

/// Other processes with this mark in their arguments or environment.
pub(crate) fn marked(mark: &str) -> Vec<(i32, String)> {
    let is_marked = |process: &Process| {
        let environment = fs::read(format!("/proc/{}/environ", process.pid)).unwrap_or_default();
        process.args.contains(mark) || String::from_utf8_lossy(&environment).contains(mark)
    };
    let others = all().filter(|process| process.pid.cast_unsigned() != std::process::id());
    others.filter(is_marked).map(|Process { pid, args }| (pid, args)).collect()
}

struct Process {
    pid: i32,
    args: String,
}

fn all() -> impl Iterator<Item = Process> {
    fs::read_dir("/proc").expect("/proc").flatten().filter_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let args = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        Some(Process { pid, args: String::from_utf8_lossy(&args).replace('\0', " ") })
    })
}
