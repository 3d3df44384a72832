//! Locks decide who is alive, never pids.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::Barrier;
use std::thread;

use agentwire_sessions::owner::{Owner, is_alive};

#[test]
fn an_owner_lives_until_it_is_dropped() {
    let directory = tempfile::tempdir().unwrap();
    let one = Owner::claim(directory.path()).unwrap();
    let two = Owner::claim(directory.path()).unwrap();
    let name = one.name().to_owned();
    assert_ne!(name, two.name());
    for _ in 0..3 {
        assert!(is_alive(directory.path(), &name));
    }
    let file = directory.path().join("owners").join(format!("{name}.lock"));
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let pid = fs::read_to_string(&file).unwrap();
    assert_eq!(pid.trim(), std::process::id().to_string());
    drop(one);
    assert!(!is_alive(directory.path(), &name));
    assert!(is_alive(directory.path(), two.name()));
    assert!(!file.exists());
}

#[test]
fn all_who_ask_at_once_agree_that_the_dead_are_dead() {
    let directory = tempfile::tempdir().unwrap();
    drop(Owner::claim(directory.path()).unwrap());
    let name = "123e4567-e89b-42d3-a456-426614174000";
    let file = directory.path().join("owners").join(format!("{name}.lock"));
    for _ in 0..50 {
        // As a killed process leaves it.
        fs::write(&file, "1\n").unwrap();
        let start = Barrier::new(4);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    start.wait();
                    assert!(!is_alive(directory.path(), name));
                });
            }
        });
        assert!(!file.exists());
    }
    let half_made = file.with_extension("new");
    for left in [&file, &half_made] {
        fs::write(left, "1\n").unwrap();
    }
    let owner = Owner::claim(directory.path()).unwrap();
    assert!(!file.exists() && !half_made.exists(), "a new owner sweeps");
    assert!(is_alive(directory.path(), owner.name()));
}

#[test]
fn a_name_leads_nowhere_else() {
    let directory = tempfile::tempdir().unwrap();
    drop(Owner::claim(directory.path()).unwrap());
    let precious = directory.path().join("precious.lock");
    fs::write(&precious, "kept").unwrap();
    for name in ["../precious", "", ".", "owner\0", "/etc/passwd"] {
        assert!(!is_alive(directory.path(), name), "{name:?}");
    }
    assert_eq!(fs::read_to_string(&precious).unwrap(), "kept");
}

#[test]
fn all_who_come_at_once_become_owners() {
    let directory = tempfile::tempdir().unwrap();
    let start = Barrier::new(8);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                start.wait();
                for _ in 0..50 {
                    let owner = Owner::claim(directory.path()).unwrap();
                    assert!(is_alive(directory.path(), owner.name()));
                }
            });
        }
    });
    assert_eq!(fs::read_dir(directory.path().join("owners")).unwrap().count(), 0);
}
