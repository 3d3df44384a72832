//! One suite for all stores: the same calls give the same results.
#![expect(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test that finds something else has failed"
)]

mod stores;

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::{env, fs, thread};

use agentwire_protocol::{LabelChange, Labels, SessionState};
use agentwire_sessions::store::memory::Memory;
use agentwire_sessions::store::sqlite::Sqlite;
use agentwire_sessions::store::{Append, Batch, Filter, ListOrder, Place, Store, StoreError};
use bytes::Bytes;
use proptest::prelude::*;
use stores::{append, batch, change, id, of_batch, record, with_each};

fn lines(store: &dyn Store, session: &str, after: u64, bytes: usize) -> Vec<(u64, Vec<u8>)> {
    let mut position = after;
    let mut lines = Vec::new();
    loop {
        let page = store.read(&id(session), position, bytes).unwrap();
        if page.is_empty() {
            return lines;
        }
        for batch in &page {
            let batch = batch.after(position).expect("nothing before");
            assert_eq!(batch.first, position + 1, "a gap or a repetition");
            lines.extend(batch.events().map(|(seq, line)| (seq, line.to_vec())));
            position = batch.last();
        }
    }
}

fn names(store: &dyn Store, filter: &Filter) -> Vec<String> {
    let records = store.sessions(filter).unwrap();
    let names = records.iter().map(|record| record.summary.id.to_string());
    names.collect()
}

#[test]
fn the_start_of_a_page_before_an_event_is_found_without_reading() {
    with_each(|store| {
        let size = |first, count| batch("a", first, count).lines.len() as u64;
        store.append(&[&append("a", 1, 3), &append("b", 1, 9)]).unwrap();
        store.append(&[&append("a", 4, 2)]).unwrap();
        store.append(&[&append("a", 6, 5)]).unwrap();
        let start =
            |before, count, bytes| store.start_before(&id("a"), before, count, bytes).unwrap();
        // By the number of events.
        assert_eq!(
            [start(11, 2, u64::MAX), start(11, 9, u64::MAX), start(7, 3, u64::MAX)],
            [8, 1, 3]
        );
        assert_eq!(
            [start(11, 99, u64::MAX), start(1, 5, u64::MAX), start(3, 2, u64::MAX)],
            [0, 0, 0]
        );
        // By their bytes: whole batches, and at least one.
        assert_eq!([start(11, 99, 1), start(11, 99, size(6, 5))], [5, 5]);
        assert_eq!(start(11, 99, size(6, 5) + 1), 3);
        assert_eq!(start(11, 99, size(6, 5) + size(4, 2) + 1), 0);
        assert_eq!(
            [start(11, 2, 1), start(9, 99, 1), start(6, 99, 1), start(5, 99, 1)],
            [8, 5, 3, 3]
        );
    });
}

#[test]
fn events_come_back_as_they_were() {
    with_each(|store| {
        store.append(&[&append("a", 1, 3), &append("b", 1, 1)]).unwrap();
        store.append(&[&append("a", 4, 2)]).unwrap();
        assert_eq!(
            store.read(&id("a"), 0, usize::MAX).unwrap(),
            [batch("a", 1, 3), batch("a", 4, 2)]
        );
        assert_eq!(store.read(&id("a"), 2, 1).unwrap(), [batch("a", 1, 3)]);
        assert_eq!(store.read(&id("a"), 3, 1).unwrap(), [batch("a", 4, 2)]);
        assert_eq!(store.read(&id("a"), 3, 0).unwrap(), [batch("a", 4, 2)]);
        for after in [5, 6, u64::MAX - 1, u64::MAX] {
            assert_eq!(store.read(&id("a"), after, 1).unwrap(), []);
        }
        assert_eq!(store.read(&id("nobody"), 0, 1).unwrap(), []);
        assert_eq!(store.session(&id("nobody")).unwrap(), None);
    });
}

/// Labels belong to the session, not to its owner, and go with it.
#[test]
fn labels_stay_with_their_session() {
    with_each(|store| {
        let change = |title: Option<&str>, pinned| LabelChange {
            title: Some(title.map(str::to_owned)),
            pinned,
            tags: Some(vec!["x".to_owned()]),
        };
        store.append(&[&append("a", 1, 3), &append("b", 1, 1)]).unwrap();
        assert!(!store.set_label(&id("nobody"), change(Some("t"), None)).unwrap());
        assert_eq!(store.label(&id("nobody")).unwrap(), Labels::default());
        assert!(store.set_label(&id("a"), change(Some("t"), Some(true))).unwrap());
        store.append(&[&append("a", 4, 1)]).unwrap();
        let labels = Labels { title: Some("t".into()), pinned: true, tags: vec!["x".into()] };
        assert_eq!(store.label(&id("a")).unwrap(), labels);
        assert_eq!(store.label(&id("b")).unwrap(), Labels::default());
        assert_eq!(store.labels().unwrap().into_iter().collect::<Vec<_>>(), [(id("a"), labels)]);
        store.set_label(&id("a"), change(None, None)).unwrap();
        assert_eq!(store.label(&id("a")).unwrap().title, None);
        assert!(store.label(&id("a")).unwrap().pinned);
        let briefs = store.briefs(ListOrder::Created, Place::START, 10).unwrap();
        let shown: Vec<_> = briefs.iter().map(|it| (it.id.as_str(), it.labels.pinned)).collect();
        assert_eq!(shown, [("b", false), ("a", true)]);
        assert_eq!(briefs[1].title.as_deref(), Some("a title"));
        assert_eq!(store.brief(&id("a")).unwrap().as_ref(), briefs.last());
        assert_eq!(store.brief(&id("nobody")).unwrap(), None);
        store.delete(&[id("a")]).unwrap();
        store.append(&[&append("a", 1, 1)]).unwrap();
        assert_eq!(store.label(&id("a")).unwrap(), Labels::default());
        assert!(store.labels().unwrap().is_empty());
    });
}

/// The last active first, and of those with the same time the one that started last.
#[test]
fn a_list_by_activity_continues_after_any_place() {
    with_each(|store| {
        let active = |name: &str, first: u64, minute: u64| {
            let mut append = append(name, first, 1);
            append.record.summary.updated_at = format!("2026-01-02T03:{minute:02}:05Z");
            append
        };
        for name in ["a", "b", "c", "d"] {
            store.append(&[&active(name, 1, 10)]).unwrap();
        }
        store.append(&[&active("b", 2, 12), &active("d", 2, 10)]).unwrap();
        let list = |after, limit| {
            let briefs = store.briefs(ListOrder::Activity, after, limit).unwrap();
            let places: Vec<Place> = briefs.iter().map(|brief| brief.place).collect();
            let names: String = briefs.iter().map(|brief| brief.id.as_str()).collect();
            (names, places)
        };
        let (all, places) = list(Place::START, 10);
        assert_eq!(all, "bdca");
        for (at, place) in places.iter().enumerate() {
            assert_eq!(list(*place, 2).0, all[at + 1..all.len().min(at + 3)]);
        }
        // It moves to the front, and is not met again.
        store.append(&[&active("c", 2, 20)]).unwrap();
        assert_eq!(list(places[1], 10).0, "a");
        assert_eq!(list(Place::START, 1).0, "c");
        store.delete(&[id("c")]).unwrap();
        assert_eq!(list(Place::START, 10).0, "bda");
    });
}

#[test]
fn a_batch_that_does_not_follow_is_a_conflict_and_nothing_is_kept() {
    with_each(|store| {
        store.append(&[&append("a", 1, 3)]).unwrap();
        for first in [1, 3, 5] {
            let error = store.append(&[&append("b", 1, 1), &append("a", first, 1)]);
            assert!(matches!(error, Err(StoreError::Conflict(_))), "{error:?}");
        }
        assert_eq!(store.session(&id("b")).unwrap(), None);
        assert_eq!(lines(store, "a", 0, 1).len(), 3);
        assert!(matches!(store.append(&[&append("c", 2, 1)]), Err(StoreError::Conflict(_))));
        // Two of one session, in order, may come together.
        store.append(&[&append("a", 4, 1), &append("a", 5, 1)]).unwrap();
        assert_eq!(lines(store, "a", 0, 1).len(), 5);
    });
}

#[test]
fn numbers_and_lines_must_agree() {
    with_each(|store| {
        let wrong = [
            (1, 0, ""),
            (0, 1, "a\n"),
            (1, 1, "a"),
            (1, 1, "a\nb"),
            (1, 2, "a\n"),
            (1, 1, "a\nb\n"),
            (u64::MAX, 1, "a\n"),
        ];
        for (first, count, text) in wrong {
            let batch = Batch { first, count, lines: Bytes::from_static(text.as_bytes()) };
            let error = store.append(&[&of_batch("a", batch)]);
            assert!(matches!(error, Err(StoreError::Failed(_))), "{text:?}");
        }
        assert_eq!(names(store, &Filter::default()), [""; 0]);
    });
}

#[test]
fn hostile_bytes_come_back_as_they_were() {
    with_each(|store| {
        let mut text: Vec<u8> = (0..=255).filter(|byte| *byte != b'\n').collect();
        text.extend_from_slice(
            b"\n\n\0\0\n'; DROP TABLE batches; --\n\xed\xa0\xbd\r\n\xef\xbb\xbf\n",
        );
        let batch = Batch { first: 1, count: 6, lines: text.into() };
        let name = "a\0'\"\u{2028}\u{1f980}";
        let mut hostile = of_batch(name, batch.clone());
        hostile.keys = vec![(name.to_owned(), "\0".to_owned())];
        store.append(&[&hostile]).unwrap();
        assert_eq!(store.read(&id(name), 0, 1).unwrap(), [batch]);
        assert_eq!(store.session(&id(name)).unwrap().unwrap(), hostile.record);
        assert_eq!(store.remembered(name).unwrap().as_deref(), Some("\0"));
        assert_eq!(store.remembered("a").unwrap(), None);
    });
}

#[test]
fn a_batch_may_be_huge() {
    with_each(|store| {
        let mut text = vec![b'x'; 63 * 1024 * 1024];
        for (place, byte) in text.iter_mut().enumerate().step_by(4093) {
            *byte = if place % 2 == 0 { 0 } else { 0xff };
        }
        text.push(b'\n');
        text.extend_from_within(..);
        let huge = Batch { first: 3, count: 2, lines: text.into() };
        store.append(&[&append("a", 1, 2)]).unwrap();
        store.append(&[&of_batch("a", huge.clone())]).unwrap();
        store.append(&[&append("a", 5, 1)]).unwrap();
        let page = store.read(&id("a"), 3, 1024).unwrap();
        assert!(page == [huge.clone()], "the huge batch alone");
        let page = store.read(&id("a"), 0, usize::MAX).unwrap();
        assert!(page == [batch("a", 1, 2), huge, batch("a", 5, 1)]);
        store.delete(&[id("a")]).unwrap();
        assert_eq!(store.read(&id("a"), 0, 1).unwrap(), []);
    });
}

#[test]
fn the_record_is_that_of_the_last_append() {
    with_each(|store| {
        store.append(&[&change(record("a", SessionState::Starting, Some("me"), 0))]).unwrap();
        let first = store.session(&id("a")).unwrap().unwrap();
        assert_eq!(first, record("a", SessionState::Starting, Some("me"), 0));
        let mut next = append("a", 1, 4);
        next.record.owner = Some("me".to_owned());
        next.record.open.turn = Some(1);
        next.record.summary.cost_usd = Some(0.1 + 0.2);
        store.append(&[&next]).unwrap();
        assert_eq!(store.session(&id("a")).unwrap(), Some(next.record));
    });
}

#[test]
fn only_the_owner_appends_and_exactly_one_takes_over() {
    with_each(|store| {
        let of = |owner, first| {
            let mut append = append("a", first, 1);
            append.record.owner = owner;
            append
        };
        let (one, two) = (Some("one".to_owned()), Some("two".to_owned()));
        store.append(&[&of(one.clone(), 1)]).unwrap();
        let error = store.append(&[&of(two.clone(), 2)]);
        assert!(matches!(error, Err(StoreError::Conflict(_))), "{error:?}");
        assert!(!store.claim(&id("a"), None, "two").unwrap());
        assert!(!store.claim(&id("a"), Some("other"), "two").unwrap());
        assert!(!store.claim(&id("nobody"), None, "two").unwrap());
        assert!(store.claim(&id("a"), Some("one"), "two").unwrap());
        assert!(!store.claim(&id("a"), Some("one"), "three").unwrap());
        assert_eq!(store.session(&id("a")).unwrap().unwrap().owner, two);
        let error = store.append(&[&of(one, 2)]);
        assert!(matches!(error, Err(StoreError::Conflict(_))), "{error:?}");
        store.append(&[&of(two, 2)]).unwrap();
        // The owner releases it; then anyone may take it.
        store.append(&[&of(None, 3)]).unwrap();
        assert!(store.claim(&id("a"), None, "three").unwrap());
    });
}

#[test]
fn sessions_are_listed_newest_first_in_pages() {
    with_each(|store| {
        for name in ["a", "b", "c", "d", "e"] {
            store.append(&[&append(name, 1, 1)]).unwrap();
        }
        for name in ["b", "d"] {
            store.append(&[&change(record(name, SessionState::Ended, None, 1))]).unwrap();
        }
        store.append(&[&append("a", 2, 1)]).unwrap();
        let page = |live, before: Option<&str>, limit| {
            let before = before.map(id);
            names(store, &Filter { live, before, limit })
        };
        assert_eq!(page(false, None, None), ["e", "d", "c", "b", "a"]);
        assert_eq!(page(false, None, Some(2)), ["e", "d"]);
        assert_eq!(page(false, Some("d"), Some(2)), ["c", "b"]);
        assert_eq!(page(false, Some("b"), Some(2)), ["a"]);
        assert_eq!(page(false, Some("a"), None), [""; 0]);
        assert_eq!(page(false, Some("nobody"), None), [""; 0]);
        assert_eq!(page(false, None, Some(0)), [""; 0]);
        assert_eq!(page(true, None, None), ["e", "c", "a"]);
        assert_eq!(page(true, Some("d"), Some(1)), ["c"]);
    });
}

#[test]
fn a_key_counts_once() {
    with_each(|store| {
        let keyed = |name, first, keys: &[&str]| {
            let mut append = append(name, first, 1);
            append.keys =
                keys.iter().map(|key| (key.to_string(), format!("{name}{first}"))).collect();
            append
        };
        store.append(&[&keyed("a", 1, &["k", "l"])]).unwrap();
        assert_eq!(store.remembered("k").unwrap().as_deref(), Some("a1"));
        for twice in [&["k"][..], &["m", "l"], &["m", "m"]] {
            let error = store.append(&[&keyed("b", 1, twice)]);
            assert!(matches!(error, Err(StoreError::Conflict(_))), "{error:?}");
        }
        let error = store.append(&[&keyed("b", 1, &["m"]), &keyed("c", 1, &["m"])]);
        assert!(matches!(error, Err(StoreError::Conflict(_))), "{error:?}");
        assert_eq!(store.remembered("m").unwrap(), None);
        assert_eq!(names(store, &Filter::default()), ["a"]);
        store.delete(&[id("a")]).unwrap();
        assert_eq!(store.remembered("k").unwrap(), None);
        store.append(&[&keyed("b", 1, &["k"])]).unwrap();
    });
}

#[test]
fn what_is_deleted_is_gone_and_does_not_come_back() {
    with_each(|store| {
        for first in 1..=600 {
            store.append(&[&append("a", first, 1)]).unwrap();
        }
        store.append(&[&append("b", 1, 2)]).unwrap();
        store.delete(&[id("a"), id("nobody"), id("a")]).unwrap();
        assert_eq!(store.session(&id("a")).unwrap(), None);
        assert_eq!(store.read(&id("a"), 0, 1).unwrap(), []);
        assert_eq!(names(store, &Filter::default()), ["b"]);
        assert_eq!(lines(store, "b", 0, 1).len(), 2);
        let late = [append("a", 601, 1), change(record("a", SessionState::Idle, None, 600))];
        for late in late {
            let error = store.append(&[&late]);
            assert!(matches!(error, Err(StoreError::Conflict(_))), "{error:?}");
        }
        // The same id may start over, with none of the old events.
        store.append(&[&append("a", 1, 1)]).unwrap();
        assert_eq!(lines(store, "a", 0, 1).len(), 1);
        assert_eq!(names(store, &Filter::default()), ["a", "b"]);
    });
}

#[test]
fn an_empty_append_changes_nothing() {
    with_each(|store| store.append(&[]).unwrap());
}

#[test]
fn reopening_gives_identical_bytes() {
    let directory = tempfile::tempdir().unwrap();
    let read = |store: &Sqlite| {
        let events = store.read(&id("a"), 0, usize::MAX).unwrap();
        (events, store.sessions(&Filter::default()).unwrap())
    };
    let before = {
        let store = Sqlite::open(directory.path()).unwrap();
        for first in 0..50 {
            store.append(&[&append("a", first * 3 + 1, 3)]).unwrap();
        }
        read(&store)
    };
    let store = Sqlite::open(directory.path()).unwrap();
    assert_eq!(read(&store), before);
    store.append(&[&append("a", 151, 1)]).unwrap();
}

#[test]
fn only_the_user_may_look_and_the_settings_are_the_durable_ones() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("deep").join("data");
    let store = Sqlite::open(&data).unwrap();
    store.append(&[&append("a", 1, 1)]).unwrap();
    let mode = |path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(data.clone()), 0o700);
    for name in ["agentwire.db", "agentwire.db-wal", "agentwire.db-shm"] {
        assert_eq!(mode(data.join(name)), 0o600, "{name}");
    }
    let status = store.status().unwrap();
    assert_eq!(status.journal_mode, "wal");
    assert_eq!(status.synchronous, 2);
    assert_eq!(status.schema, 4);
    assert!(status.bytes > 0 && status.log_bytes > 0);
}

#[test]
fn a_newer_database_is_refused_and_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    drop(Sqlite::open(directory.path()).unwrap());
    let path = directory.path().join("agentwire.db");
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection.pragma_update(None, "user_version", 99).unwrap();
    drop(connection);
    let error = Sqlite::open(directory.path()).unwrap_err();
    assert!(error.to_string().contains("upgrade"), "{error}");
    let connection = rusqlite::Connection::open(&path).unwrap();
    let version = connection.pragma_query_value(None, "user_version", |row| row.get::<_, u32>(0));
    assert_eq!(version.unwrap(), 99);
}

/// What the batches of [`old_store`] contain. Rows without a checksum are believed only if they are events.
fn old_batches() -> [Batch; 2] {
    [(1, 3), (4, 2)].map(|(first, count)| {
        let lines: String = (first..first + count)
            .map(|seq| format!("{{\"seq\":{seq},\"type\":\"textChunk\"}}\n"))
            .collect();
        Batch { first, count, lines: lines.into() }
    })
}

/// A store that an earlier version wrote, with tables of version `version`: two batches of session `a`.
fn old_store(directory: &Path, version: usize) {
    let connection = rusqlite::Connection::open(directory.join("agentwire.db")).unwrap();
    connection.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(())).unwrap();
    let tables = [
        include_str!("../src/store/sqlite/schema_1.sql"),
        include_str!("../src/store/sqlite/schema_2.sql"),
    ];
    for migration in tables.iter().take(version) {
        connection.execute_batch(migration).unwrap();
    }
    connection.pragma_update(None, "user_version", version).unwrap();
    let record = serde_json::to_string(&record("a", SessionState::Idle, None, 5)).unwrap();
    let insert = "INSERT INTO sessions (id, state, last, record) VALUES ('a', 'idle', 5, ?1)";
    connection.execute(insert, [record]).unwrap();
    for batch in old_batches() {
        let insert = "INSERT INTO batches (session, first, part, count, size, lines) \
                      VALUES (1, ?1, 0, ?2, ?3, ?4)";
        let values = (batch.first, batch.count, batch.lines.len() as u64, &batch.lines[..]);
        connection.execute(insert, values).unwrap();
    }
}

#[test]
fn an_older_store_is_read_and_continued() {
    for version in [1, 2] {
        let directory = tempfile::tempdir().unwrap();
        old_store(directory.path(), version);
        let [first, second] = old_batches();
        let all = [first, second, batch("a", 6, 2)];
        let store = Sqlite::open(directory.path()).unwrap();
        assert_eq!(store.status().unwrap().schema, 4);
        assert_eq!(names(&store, &Filter::default()), ["a"]);
        assert_eq!(store.read(&id("a"), 0, usize::MAX).unwrap(), all[..2]);
        store.append(&[&append("a", 6, 2)]).unwrap();
        assert_eq!(store.read(&id("a"), 0, usize::MAX).unwrap(), all);
        let report = store.check(&mut |_, _| ()).unwrap();
        assert!(report.damage.is_empty(), "{report:?}");
        drop(store);
        let store = Sqlite::open(directory.path()).unwrap();
        assert_eq!(store.read(&id("a"), 0, usize::MAX).unwrap(), all);
    }
}

/// Runs the test below in its own mount namespace, where it can mount a small file system.
#[test]
fn an_older_store_on_a_full_disk_stays_as_it_is() {
    let mut command = Command::new("unshare");
    command.args(match rustix::process::geteuid().is_root() {
        true => &["--mount"][..],
        false => &["--mount", "--map-root-user"][..],
    });
    command.arg(env::current_exe().unwrap());
    command.args(["--exact", "older_store_on_a_small_disk", "--ignored", "--nocapture"]);
    let output = command.env("AGENTWIRE_TEST_NAMESPACE", "1").output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

#[test]
#[ignore = "run by an_older_store_on_a_full_disk_stays_as_it_is in its own mount namespace"]
fn older_store_on_a_small_disk() {
    if env::var_os("AGENTWIRE_TEST_NAMESPACE").is_none() {
        return;
    }
    for version in [1, 2] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        let mount = |args: &[&str]| Command::new("mount").args(args).arg(path).status().unwrap();
        assert!(mount(&["-t", "tmpfs", "-o", "size=1m", "tmpfs"]).success());
        old_store(path, version);
        // From no room at all to just not enough: the migration is interrupted at every step.
        let fill = path.join("fill");
        let mut file = fs::File::create(&fill).unwrap();
        while file.write_all(&[b'x'; 4096]).is_ok() {}
        let mut length = file.metadata().unwrap().len();
        let mut refusals = 0;
        let store = loop {
            match Sqlite::open(path) {
                Ok(store) => break store,
                Err(StoreError::Full(_) | StoreError::Busy(_)) => refusals += 1,
                Err(error) => panic!("{error}"),
            }
            length -= 4096;
            file.set_len(length).unwrap();
        };
        assert!(refusals > 0);
        assert_eq!(store.read(&id("a"), 0, usize::MAX).unwrap(), old_batches());
        drop(file);
        fs::remove_file(&fill).unwrap();
        store.append(&[&append("a", 6, 2)]).unwrap();
        drop(store);
        let store = Sqlite::open(path).unwrap();
        assert_eq!(lines(&store, "a", 0, usize::MAX).len(), 7);
        drop(store);
        assert!(Command::new("umount").arg("-l").arg(path).status().unwrap().success());
    }
}

#[test]
fn a_file_that_is_no_database_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("agentwire.db"), "a letter\n".repeat(999)).unwrap();
    assert!(matches!(Sqlite::open(directory.path()), Err(StoreError::Failed(_))));
}

#[test]
fn many_may_open_a_new_directory_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    thread::scope(|scope| {
        for name in ["a", "b", "c", "d", "e", "f", "g", "h"] {
            let data = &data;
            scope.spawn(move || {
                let store = Sqlite::open(data).unwrap();
                store.append(&[&append(name, 1, 1)]).unwrap();
            });
        }
    });
    let store = Sqlite::open(&data).unwrap();
    assert_eq!(names(&store, &Filter::default()).len(), 8);
}

#[test]
fn of_two_processes_one_takes_over_and_each_sees_what_the_other_added() {
    let directory = tempfile::tempdir().unwrap();
    let one = Sqlite::open(directory.path()).unwrap();
    let two = Sqlite::open(directory.path()).unwrap();
    for round in 0..20 {
        let session = format!("s{round}");
        let before = two.version().unwrap();
        one.append(&[&append(&session, 1, 1)]).unwrap();
        assert_ne!(two.version().unwrap(), before);
        assert_eq!(two.version().unwrap(), two.version().unwrap());
        assert_eq!(two.read(&id(&session), 0, 1).unwrap(), [batch(&session, 1, 1)]);
        let session = &id(&session);
        let won = thread::scope(|scope| {
            let tries = [(&one, "1"), (&two, "2")].map(|(store, name)| {
                scope.spawn(move || store.claim(session, None, name).unwrap())
            });
            tries.map(|thread| thread.join().unwrap())
        });
        assert!(won[0] != won[1], "{won:?}");
    }
}

/// Session, offset of the first event, count, owner, key.
type AppendSpec = (u8, i8, u8, Option<u8>, Option<u8>);

#[derive(Clone, Debug)]
enum Step {
    Append(Vec<AppendSpec>),
    Claim(u8, Option<u8>, u8),
    Delete(Vec<u8>),
}

fn step() -> impl Strategy<Value = Step> {
    let few = 0..4_u8;
    let part = (
        few.clone(),
        prop_oneof![8 => Just(0_i8), 1 => -2..3_i8],
        0..5_u8,
        prop_oneof![4 => Just(None), 1 => (0..2_u8).prop_map(Some)],
        prop_oneof![6 => Just(None), 1 => (0..30_u8).prop_map(Some)],
    );
    prop_oneof![
        8 => prop::collection::vec(part, 1..4).prop_map(Step::Append),
        1 => (few.clone(), prop::option::of(0..2_u8), 0..2_u8)
            .prop_map(|(session, expected, owner)| Step::Claim(session, expected, owner)),
        1 => prop::collection::vec(few, 0..3).prop_map(Step::Delete),
    ]
}

fn take(store: &dyn Store, step: &Step) -> Result<bool, StoreError> {
    let owner = |owner: Option<u8>| owner.map(|owner| format!("owner{owner}"));
    match step {
        Step::Append(parts) => {
            let mut appends: Vec<Append> = Vec::new();
            for (session, shift, count, by, key) in parts {
                let name = format!("s{session}");
                let kept = store.session(&id(&name))?.map_or(0, |r| r.summary.last_seq);
                let earlier = appends.iter().filter(|a| a.record.summary.id == id(&name));
                let last = earlier.last().map_or(kept, |a| a.record.summary.last_seq);
                let first = (last + 1).saturating_add_signed(i64::from(*shift)).max(1);
                let mut append = if *count == 0 {
                    change(record(&name, SessionState::Ended, None, last))
                } else {
                    append(&name, first, u64::from(*count))
                };
                append.record.owner = owner(*by);
                append.keys = key.iter().map(|k| (format!("k{k}"), name.clone())).collect();
                appends.push(append);
            }
            store.append(&appends.iter().collect::<Vec<_>>())?;
            Ok(true)
        }
        Step::Claim(session, expected, by) => store.claim(
            &id(&format!("s{session}")),
            owner(*expected).as_deref(),
            &format!("owner{by}"),
        ),
        Step::Delete(sessions) => {
            let sessions: Vec<_> = sessions.iter().map(|s| id(&format!("s{s}"))).collect();
            store.delete(&sessions)?;
            Ok(true)
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn stores_cannot_be_told_apart(steps in prop::collection::vec(step(), 1..40)) {
        let memory = Memory::new();
        let (sqlite, _directory) = stores::sqlite();
        for step in &steps {
            prop_assert_eq!(take(&memory, step), take(&*sqlite, step), "{:?}", step);
        }
        for live in [false, true] {
            let filter = Filter { live, ..Filter::default() };
            prop_assert_eq!(memory.sessions(&filter), sqlite.sessions(&filter));
        }
        for session in (0..4).map(|session| id(&format!("s{session}"))) {
            for (after, bytes) in [(0, 1), (3, 400), (7, usize::MAX)] {
                prop_assert_eq!(
                    memory.read(&session, after, bytes),
                    sqlite.read(&session, after, bytes)
                );
            }
        }
        for key in (0..30).map(|key| format!("k{key}")) {
            prop_assert_eq!(memory.remembered(&key), sqlite.remembered(&key));
        }
    }

    #[test]
    fn however_it_was_cut_it_reads_the_same(
        counts in prop::collection::vec(1..20_u64, 1..30),
        places in prop::collection::vec((0..600_u64, 0..20_000_usize), 8),
    ) {
        let memory = Memory::new();
        let (sqlite, _directory) = stores::sqlite();
        let stores: [&dyn Store; 2] = [&memory, &*sqlite];
        let mut last = 0;
        for count in counts {
            for store in stores {
                store.append(&[&append("a", last + 1, count)]).unwrap();
            }
            last += count;
        }
        for (after, bytes) in places {
            let expected: Vec<_> = (after + 1..=last)
                .map(|seq| (seq, stores::line("a", seq).into_bytes()))
                .collect();
            for store in stores {
                prop_assert_eq!(&lines(store, "a", after, bytes), &expected);
            }
        }
    }
}
