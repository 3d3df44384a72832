//! Tokens and tickets.

use super::*;

/// A data directory, and a directory for secrets.
fn places() -> (tempfile::TempDir, tempfile::TempDir) {
    (tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("a directory"))
}

fn open((data, base): &(tempfile::TempDir, tempfile::TempDir)) -> io::Result<Tokens> {
    Tokens::open_in(data.path(), base.path())
}

#[test]
fn a_token_is_known_until_it_is_revoked_by_anybody() {
    let places = places();
    let (ours, theirs) = (open(&places).expect("tokens"), open(&places).expect("tokens"));
    let main = ours.main().expect("a token");
    assert_eq!(URL_SAFE_NO_PAD.decode(&main).expect("base64").len(), 32);
    assert_eq!(theirs.caller(&main).map(|caller| caller.scope), Some(Scope::Admin));
    let (entry, secret) =
        theirs.create("phone", Scope::Approve, "now".to_owned()).expect("a token");
    let caller = ours.caller(&secret).expect("it is known");
    assert_eq!((&*caller.name, caller.scope), ("phone", Scope::Approve));
    assert!(ours.knows(&caller));
    let (other, twin) = theirs.create("phone", Scope::Watch, "now".to_owned()).expect("a token");
    let named = |secret| ours.caller(secret).map(|caller| caller.name.to_string());
    assert_eq!(named(&twin), Some(format!("phone ({})", other.id)));
    assert_eq!(named(&secret), Some(format!("phone ({})", entry.id)));
    assert!(theirs.revoke(&other.id).expect("it is revoked"));
    assert!(theirs.revoke(&entry.id).expect("it is revoked"));
    assert!(!theirs.revoke(&entry.id).expect("once"));
    assert_eq!(ours.caller(&secret), None);
    assert!(!ours.knows(&caller));
    assert_eq!(ours.caller(""), None);
    assert!(ours.caller(&main).is_some());
}

/// An agent may be able to rename a directory above the data directory, and to create another there.
#[test]
#[cfg(target_os = "linux")]
fn tokens_in_another_directory_of_the_same_name_are_unknown() {
    let (above, base) = places();
    let (own, away) = (above.path().join("own"), above.path().join("away"));
    let data = own.join("data");
    fs::create_dir_all(&data).expect("a directory");
    let ours = Tokens::open_in(&data, base.path()).expect("tokens");
    let main = ours.main().expect("a token");
    fs::rename(&own, &away).expect("it moves");
    fs::create_dir_all(&data).expect("a directory");
    let forged = Tokens::open_in(&data, base.path()).expect("tokens");
    let (_, secret) = forged.create("x", Scope::Admin, String::new()).expect("a token");
    let forged_main = forged.main().expect("a token");
    assert!(forged.caller(&secret).is_some() && forged_main != main);
    assert_eq!((ours.caller(&secret), ours.caller(&forged_main)), (None, None));
    assert!(ours.caller(&main).is_some());
    // What the operator creates is stored where it is read.
    let (_, secret) = ours.create("y", Scope::Watch, String::new()).expect("a token");
    assert!(ours.caller(&secret).is_some() && forged.caller(&secret).is_none());
    assert!(ours.main().is_ok_and(|token| token == main));
}

#[test]
fn many_who_open_a_new_directory_at_once_have_one_token() {
    for _ in 0..20 {
        let places = places();
        let start = std::sync::Barrier::new(8);
        let open = || {
            start.wait();
            open(&places).and_then(|tokens| tokens.main()).expect("a token")
        };
        let found: std::collections::HashSet<String> = std::thread::scope(|scope| {
            let opening: Vec<_> = (0..8).map(|_| scope.spawn(open)).collect();
            opening.into_iter().map(|it| it.join().expect("it opens")).collect()
        });
        assert_eq!(found.len(), 1);
        assert_eq!(fs::read_dir(places.1.path()).expect("files").count(), 1);
    }
}

#[test]
fn the_data_directory_holds_no_token_and_the_files_are_the_owners_alone() {
    let places = places();
    let tokens = open(&places).expect("tokens");
    let (_, secret) = tokens.create("x", Scope::Watch, String::new()).expect("a token");
    let operator = tokens.main().expect("a token");
    let files: Vec<_> = fs::read_dir(places.0.path()).expect("files").flatten().collect();
    assert_eq!(files.len(), 2);
    for file in files {
        assert_eq!(file.metadata().expect("data").mode() & 0o777, 0o600);
        let text = fs::read_to_string(file.path()).expect("text");
        assert!(!text.contains(&secret) && !text.contains(&operator), "{text}");
    }
    let file = tokens.main_file();
    assert!(file.starts_with(places.1.path()), "{file:?}");
    assert_eq!(fs::metadata(file).expect("data").mode() & 0o777, 0o600);
    let directory = file.parent().expect("a directory");
    assert_eq!(fs::metadata(directory).expect("data").mode() & 0o777, 0o700);
}

#[test]
fn the_operators_token_lasts_as_long_as_its_file() {
    let places = places();
    let (first, file) = {
        let tokens = open(&places).expect("tokens");
        (tokens.main().expect("a token"), tokens.main_file().to_owned())
    };
    let tokens = open(&places).expect("tokens");
    assert_eq!(tokens.main().expect("a token"), first);
    // As after a restart of the machine. A process that has the data directory open learns the new token at
    // once.
    fs::remove_dir_all(file.parent().expect("a directory")).expect("it is removed");
    assert!(tokens.main().is_err_and(|error| error.to_string().contains("token show")));
    let again = open(&places).expect("tokens").main().expect("a token");
    assert_ne!(again, first);
    assert_eq!(tokens.caller(&first), None);
    assert_eq!(tokens.caller(&again).map(|caller| caller.scope), Some(Scope::Admin));
}

#[test]
fn a_token_that_the_data_directory_held_moves() {
    let places = places();
    let secret = "x".repeat(43);
    let former = places.0.path().join("token");
    fs::write(&former, format!("{secret}\n")).expect("a file");
    let tokens = open(&places).expect("tokens");
    assert_eq!(tokens.caller(&secret).map(|caller| caller.scope), Some(Scope::Admin));
    assert_eq!(tokens.main().expect("a token"), secret);
    assert!(!former.exists());
}

#[test]
fn what_is_no_token_is_refused_with_the_command_that_helps() {
    let good = "x".repeat(43);
    for wrong in [
        &b""[..],
        b"\n",
        b"abc\n",
        &[b'x'; 31],
        &[0xff; 43],
        b"two words are no token, however long they are",
    ] {
        // The current file, and the file of older versions.
        for is_former in [false, true] {
            let places = places();
            let file = match is_former {
                true => places.0.path().join("token"),
                false => open(&places).expect("tokens").main_file().to_owned(),
            };
            fs::write(&file, wrong).expect("a file");
            let error = open(&places).expect_err("it is refused").to_string();
            // The error never suggests removing a file that agentwire did not make.
            let command = if is_former { "mv" } else { "rm" };
            assert!(error.contains(&format!("{command} '{}'", file.display())), "{error}");
            assert_eq!(error.contains("rm '"), !is_former, "{error}");
            fs::remove_file(&file).expect("it is removed");
            assert!(open(&places).is_ok());
        }
    }
    // A token that someone else wrote there is refused.
    let places = places();
    let file = open(&places).expect("tokens").main_file().to_owned();
    fs::write(&file, &good).expect("a file");
    assert!(open(&places).is_err_and(|error| error.to_string().contains("rm '")));
}

#[test]
fn secrets_of_directories_that_are_gone_are_removed() {
    let places = places();
    let kept = open(&places).expect("tokens").main_file().to_owned();
    let gone = tempfile::tempdir().expect("a directory");
    let held = Tokens::open_in(gone.path(), places.1.path()).expect("tokens");
    let stale = held.main_file().to_owned();
    drop((gone, held));
    let other = tempfile::tempdir().expect("a directory");
    let _tokens = Tokens::open_in(other.path(), places.1.path()).expect("tokens");
    assert!(kept.exists() && !stale.exists());
}

#[test]
fn a_ticket_is_good_once_and_not_for_long() {
    let tickets = Tickets::default();
    let caller = Caller::without_token("page", Scope::Drive);
    let now = Instant::now();
    let ticket = tickets.issue(caller.clone(), now).expect("a ticket");
    assert_eq!(tickets.redeem("no", now), None);
    assert_eq!(tickets.redeem(&ticket, now), Some(caller.clone()));
    assert_eq!(tickets.redeem(&ticket, now), None);
    let ticket = tickets.issue(caller.clone(), now).expect("a ticket");
    assert_eq!(tickets.redeem(&ticket, now + TICKET_LIFE), None);
    for _ in 0..TICKET_LIMIT {
        assert!(tickets.issue(caller.clone(), now).is_some());
    }
    assert!(tickets.issue(caller.clone(), now).is_none());
    assert!(tickets.issue(caller, now + TICKET_LIFE).is_some());
}

#[test]
fn scopes_allow_what_they_say() {
    let allowed: Vec<Vec<&str>> = Scope::ALL
        .iter()
        .map(|(_, has)| {
            let may = Scope::ALL.iter().filter(|(_, needs)| has.allows(*needs));
            may.map(|(name, _)| *name).collect()
        })
        .collect();
    let all = vec!["watch", "drive", "approve", "admin"];
    assert_eq!(allowed, [vec!["watch"], vec!["watch", "drive"], vec!["watch", "approve"], all]);
}
