use super::*;

/// Bytes that differ from their neighbours.
fn some(count: usize, seed: usize) -> Vec<u8> {
    (0..count).map(|at| ((at * 31 + seed * 7 + at / 251) % 256) as u8).collect()
}

fn backlog(directory: &tempfile::TempDir) -> Backlog {
    Backlog::new(directory.path().to_owned())
}

/// Takes at most `most` bytes.
fn take(backlog: &mut Backlog, most: usize) -> Vec<u8> {
    let next = backlog.next().expect("the files can be read");
    let taken = next[..next.len().min(most)].to_vec();
    backlog.advance(taken.len());
    taken
}

#[test]
fn bytes_come_out_as_they_went_in_however_they_are_taken() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut backlog = backlog(&directory);
    let (mut expected, mut taken) = (Vec::new(), Vec::new());
    let sizes = [1, SMALL - 1, 1, 3, PIECE, SMALL, 5 << 20, 0, 20 << 20, 7, PIECE + 1];
    for (round, size) in sizes.into_iter().enumerate() {
        let bytes = some(size, round);
        backlog.push(&bytes);
        expected.extend(bytes);
        assert_eq!(backlog.len(), expected.len() - taken.len());
        taken.extend(take(&mut backlog, 300_000));
    }
    while !backlog.is_empty() {
        taken.extend(take(&mut backlog, 70_000));
    }
    assert!(taken == expected, "{} of {} bytes", taken.len(), expected.len());
    assert!(backlog.next().expect("nothing to read").is_empty());
    // No file name remains, and no space stays in use.
    assert_eq!(std::fs::read_dir(directory.path()).expect("a directory").count(), 0);
    assert_eq!((backlog.in_memory(), backlog.files.len()), (0, 0));
}

#[test]
fn what_nobody_reads_is_not_in_memory() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut backlog = backlog(&directory);
    for round in 0..8 {
        backlog.push(&some(8 << 20, round));
        assert!(backlog.in_memory() <= 2 * SMALL, "{}", backlog.in_memory());
    }
    assert_eq!(backlog.len(), 64 << 20);
    backlog.clear();
    assert_eq!((backlog.len(), backlog.in_memory()), (0, 0));
}

#[test]
fn files_that_are_read_are_given_up() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut backlog = backlog(&directory);
    backlog.push(&some(2 << 20, 0));
    // It is never empty, as with an agent that is always slightly behind.
    for round in 0..40 {
        backlog.push(&some(2 << 20, round));
        for _ in 0..8 {
            take(&mut backlog, PIECE);
        }
    }
    let kept: u64 = backlog.files.iter().map(|part| part.length).sum();
    assert!(kept <= 2 * FILE, "{kept}");
}

#[test]
fn without_room_on_the_disk_it_stays_in_memory() {
    let mut backlog = Backlog::new(PathBuf::from("/nowhere"));
    // As if the disk were full: this file cannot be written.
    let file = File::open("/dev/null").expect("a file");
    backlog.push(b"first ");
    backlog.files.push_back(BacklogFile { file, length: 0, read: 0 });
    backlog.push(b"second ");
    backlog.push(b"third");
    assert_eq!(backlog.len(), 18);
    let mut taken = Vec::new();
    while !backlog.is_empty() {
        taken.extend(take(&mut backlog, 4));
    }
    assert_eq!(taken, b"first second third");
}
