//! Paths onto file systems that do not answer, and which threads continue meanwhile.

use std::collections::HashMap;
use std::sync::mpsc;
use std::thread;

use super::*;

const LONG: Duration = Duration::from_secs(60);

fn table() -> Mounts {
    Mounts::read(
        b"1 0 8:1 / / rw - ext4 a rw\n\
          2 1 0:40 / /net/dead rw - nfs4 b rw\n\
          3 1 0:40 /sub /srv/same rw - nfs4 b rw\n\
          4 1 0:41 / /net/well rw - nfs4 c rw\n",
    )
}

/// The links on a disk where everything else is a directory.
fn links(at: &Path) -> Option<PathBuf> {
    let links = HashMap::from([
        ("/home/link", "/net/dead/deep"),
        ("/home/near", "../net/./dead"),
        ("/home/loop", "loop"),
        ("/home/up", "/net/well/.."),
    ]);
    links.get(at.to_str()?).map(PathBuf::from)
}

#[test]
fn links_are_followed_and_what_is_not_there_is_kept() {
    static VISITS: Visits = Visits::new(1, LONG);
    for (path, end) in [
        ("/", "/"),
        ("/home/./a//b/", "/home/a/b"),
        ("/home/link/x/../y", "/net/dead/deep/y"),
        ("/home/near/x", "/net/dead/x"),
        ("/home/up/x", "/net/x"),
        ("/home/loop/x", "/"),
        ("/../..", "/"),
    ] {
        let reached = VISITS.reach(Path::new(path), LONG, Some(&table()), links).unwrap();
        assert_eq!(reached.path, Path::new(end), "{path}");
    }
    assert!(VISITS.under_way().visits.is_empty());
}

#[test]
fn a_link_leads_where_the_system_says() {
    let root = tempfile::tempdir().unwrap();
    let real = root.path().canonicalize().unwrap();
    std::fs::create_dir_all(real.join("a/b")).unwrap();
    std::os::unix::fs::symlink("a/b", real.join("link")).unwrap();
    std::os::unix::fs::symlink("nothing/yet", real.join("dangling")).unwrap();
    for (path, end) in
        [("link", "a/b"), ("link/../x", "a/x"), ("dangling/x", "nothing/yet/x"), ("a/b/..", "a")]
    {
        assert_eq!(reach(&real.join(path), LONG).unwrap().path, real.join(end), "{path}");
    }
}

#[test]
fn threads_hang_on_one_file_system_up_to_a_number_and_nobody_else_waits() {
    static VISITS: Visits = Visits::new(3, Duration::from_millis(100));
    let (inside, entered) = mpsc::sync_channel::<()>(100);
    let hung: Vec<_> = (0..50)
        .map(|number| {
            let inside = inside.clone();
            let (release, held) = mpsc::sync_channel::<()>(1);
            let path = match number % 3 {
                0 => format!("/net/dead/{number}"),
                1 => format!("/srv/same/{number}"),
                _ => format!("/home/link/{number}"),
            };
            let target = move |at: &Path| {
                let device = table().device(at);
                if device == Some((0, 40)) {
                    inside.send(()).unwrap();
                    let _ = held.recv();
                }
                links(at)
            };
            let call =
                move || VISITS.reach(Path::new(&path), LONG, Some(&table()), target).is_some();
            (release, thread::spawn(call))
        })
        .collect();
    (0..3).for_each(|_| entered.recv().unwrap());
    // All but three have returned without touching it.
    let (stuck, back): (Vec<_>, Vec<_>) = {
        while hung.iter().filter(|(_, thread)| !thread.is_finished()).count() > 3 {
            thread::yield_now();
        }
        hung.into_iter().partition(|(_, thread)| !thread.is_finished())
    };
    assert_eq!((stuck.len(), back.len()), (3, 47));
    assert!(back.into_iter().all(|(_, thread)| !thread.join().unwrap()));
    assert!(entered.try_recv().is_err());
    for path in ["/home/x", "/net/well/x", "/net", "/home/up"] {
        assert!(VISITS.reach(Path::new(path), LONG, Some(&table()), links).is_some(), "{path}");
    }
    for path in ["/net/dead", "/srv/same/x", "/home/link/x"] {
        assert!(VISITS.reach(Path::new(path), LONG, Some(&table()), links).is_none(), "{path}");
    }
    // It answers again.
    for (release, thread) in stuck {
        drop(release);
        assert!(thread.join().unwrap());
    }
    assert!(VISITS.reach(Path::new("/net/dead/x"), LONG, Some(&table()), links).is_some());
}

#[test]
fn one_that_hangs_for_longer_than_a_caller_would_wait_is_enough() {
    static VISITS: Visits = Visits::new(3, LONG);
    let mounts = table();
    let held = VISITS.reach(Path::new("/net/dead"), LONG, Some(&mounts), links);
    let again = |patience| VISITS.reach(Path::new("/net/dead/x"), patience, Some(&mounts), links);
    assert!(again(Duration::ZERO).is_none());
    assert!(again(LONG).is_some());
    drop(held);
    assert!(again(Duration::ZERO).is_some());
}

#[test]
fn those_who_find_it_full_go_on_when_one_leaves() {
    static VISITS: Visits = Visits::new(1, LONG);
    let held = VISITS.reach(Path::new("/net/well"), LONG, Some(&table()), links).unwrap();
    let call = || VISITS.reach(Path::new("/net/well/x"), LONG, Some(&table()), links).is_some();
    let waits = thread::spawn(call);
    drop(held);
    assert!(waits.join().unwrap());
}

#[test]
fn without_a_table_nothing_is_held_against_a_path() {
    static VISITS: Visits = Visits::new(1, Duration::ZERO);
    let held = VISITS.reach(Path::new("/a"), Duration::ZERO, None, links);
    assert!(VISITS.reach(Path::new("/b"), Duration::ZERO, None, links).is_some());
    assert!(held.is_some());
}
