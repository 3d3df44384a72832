//! Which program is started, and with which files.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use agentwire_dialects::agent::{ArgPart, Launch, Start, Stdin};
use agentwire_protocol::command::Image;
use agentwire_protocol::{Prompt, SessionConfig};
use agentwire_sessions::process::{LaunchFiles, ResolveError, StdinPlan, prepare, resolve};

fn program(path: &Path, mode: u32) -> PathBuf {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, "#!/bin/sh\n").unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    path.to_owned()
}

fn search(entries: &[&Path]) -> OsString {
    std::env::join_paths(entries).unwrap()
}

#[test]
fn a_name_is_found_on_the_path_in_order() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    let work = root.join("work");
    fs::create_dir(&work).unwrap();
    program(&root.join("a/agent"), 0o644);
    fs::create_dir_all(root.join("b/agent")).unwrap();
    let right = program(&root.join("c/agent"), 0o755);
    program(&root.join("d/agent"), 0o755);
    let path = search(&[&root.join("a"), &root.join("b"), &root.join("c"), &root.join("d")]);
    assert_eq!(resolve("agent", Some(&path), &work), Ok(right));
    assert_eq!(resolve("other", Some(&path), &work), Err(ResolveError::NotFound("other".into())));
    assert_eq!(resolve("agent", None, &work), Err(ResolveError::NotFound("agent".into())));
}

#[test]
fn what_the_working_directory_brings_is_passed_over() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    let work = root.join("work");
    let planted = program(&work.join("node_modules/.bin/agent"), 0o755);
    let right = program(&root.join("bin/agent"), 0o755);
    // By its path, by a link to the directory, by a link to the file, through `..`.
    symlink(work.join("node_modules/.bin"), root.join("linked")).unwrap();
    fs::create_dir(root.join("links")).unwrap();
    symlink(&planted, root.join("links/agent")).unwrap();
    let around = root.join("bin/../work/node_modules/.bin");
    let inside: [&Path; 4] =
        [planted.parent().unwrap(), &root.join("linked"), &root.join("links"), &around];
    for entry in inside {
        let path = search(&[entry, right.parent().unwrap()]);
        assert_eq!(resolve("agent", Some(&path), &work), Ok(right.clone()), "{entry:?}");
        let path = search(&[entry]);
        assert_eq!(
            resolve("agent", Some(&path), &work),
            Err(ResolveError::Inside(entry.join("agent")))
        );
    }
    // A link inside to a program outside is still the working directory's choice.
    let link = work.join("bin");
    fs::create_dir(&link).unwrap();
    symlink(&right, link.join("agent")).unwrap();
    let path = search(&[&link]);
    assert_eq!(resolve("agent", Some(&path), &work), Err(ResolveError::Inside(link.join("agent"))));
}

#[test]
fn this_very_program_is_passed_over() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    let work = root.join("work");
    let own = root.join("own/agent");
    fs::create_dir_all(own.parent().unwrap()).unwrap();
    // Through a link to a link, as a package manager installs it.
    symlink(std::env::current_exe().unwrap(), root.join("own/agentwire")).unwrap();
    symlink("agentwire", &own).unwrap();
    let right = program(&root.join("bin/agent"), 0o755);
    let path = search(&[own.parent().unwrap(), right.parent().unwrap()]);
    assert_eq!(resolve("agent", Some(&path), &work), Ok(right));
    let path = search(&[own.parent().unwrap()]);
    let error = resolve("agent", Some(&path), &work).unwrap_err();
    assert_eq!(error, ResolveError::Itself(own.clone()));
    assert!(error.to_string().contains("agentwire itself"), "{error}");
    // Given by its path, it is used.
    assert_eq!(resolve(own.to_str().unwrap(), None, &work), Ok(own));
}

#[test]
fn where_everything_is_inside_nothing_is_passed_over() {
    for above in [Path::new("/"), &std::env::home_dir().unwrap()] {
        assert_eq!(resolve("sh", Some(OsStr::new("/bin")), above), Ok("/bin/sh".into()));
    }
}

#[test]
fn empty_and_relative_entries_are_passed_over() {
    let root = tempfile::tempdir().unwrap();
    let right = program(&root.path().join("bin/sh"), 0o755);
    let bin = right.parent().unwrap().to_str().unwrap();
    for path in [format!(":{bin}"), format!(".:{bin}"), format!("../../../../../bin::{bin}")] {
        let found = resolve("sh", Some(OsStr::new(&path)), Path::new("/nowhere"));
        assert_eq!(found, Ok(right.clone()), "{path}");
    }
}

#[test]
fn a_path_is_taken_as_it_is_if_it_can_be_executed() {
    let root = tempfile::tempdir().unwrap();
    let right = program(&root.path().join("agent"), 0o755);
    let wrong = program(&root.path().join("text"), 0o644);
    let resolve = |program: &str| resolve(program, None, root.path());
    assert_eq!(resolve(right.to_str().unwrap()), Ok(right));
    assert_eq!(resolve(wrong.to_str().unwrap()), Err(ResolveError::NotExecutable(wrong)));
    assert!(matches!(resolve("/nowhere/agent"), Err(ResolveError::NotExecutable(_))));
    for relative in ["./agent", "bin/agent", "../agent", ""] {
        assert_eq!(resolve(relative), Err(ResolveError::Relative(relative.to_owned())));
    }
}

#[test]
fn files_are_private_and_removed_with_the_process() {
    let place = tempfile::tempdir().unwrap();
    let config =
        SessionConfig { working_directory: Some("/tmp".to_owned()), ..SessionConfig::default() };
    let mut launch = Launch::new("agent", &config);
    let file = |name: &str| ArgPart::File(name.to_owned());
    let text = |text: &str| ArgPart::Text(text.to_owned());
    // User text is not filled in, whatever it looks like.
    let odd = "{file:a.json} {escaped:b} {file:} {quoted:b}";
    launch.words(&["--plain", "{file:a.json}"]).option("--model", odd);
    launch.option_of("--config", [file("a.json")]);
    launch.option_of("--both", [file("a.json"), text(",{file:b},"), file("b")]);
    launch.stdin = Stdin::Empty;
    launch.option_of("--all", [ArgPart::Directory]);
    launch.option_of("--said", [text("@"), ArgPart::EscapedFile("b".to_owned())]);
    launch.option_of("--list", [text("["), ArgPart::QuotedFile("b".to_owned()), text("]")]);
    launch.file("a.json", "{}").file("b", *b"\xff");
    // The directory need not exist.
    let runtime = place.path().join("da \"ta/run");
    let (spawn, files) = prepare(&launch, "/bin/agent".into(), &runtime, None).unwrap();

    let directory = fs::read_dir(&runtime).unwrap().next().unwrap().unwrap().path();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let (a, b) = (directory.join("a.json"), directory.join("b"));
    assert_eq!((mode(&directory), mode(&a), mode(&b)), (0o700, 0o600, 0o600));
    assert_eq!((fs::read(&a).unwrap(), fs::read(&b).unwrap()), (b"{}".to_vec(), vec![0xff]));
    let args = [
        "--plain".to_owned(),
        "{file:a.json}".to_owned(),
        format!("--model={odd}"),
        format!("--config={}", a.display()),
        format!("--both={},{{file:b}},{}", a.display(), b.display()),
        format!("--all={}", directory.display()),
        format!("--said=@{}", b.display().to_string().replace(' ', "\\ ").replace('"', "\\\"")),
        format!("--list=[{}]", serde_json::json!(b.display().to_string())),
    ];
    assert_eq!(spawn.args, args.map(OsString::from));
    assert_eq!((spawn.directory, spawn.stdin), ("/tmp".into(), StdinPlan::Null));
    let pwd: Vec<_> = spawn.env.iter().filter(|(name, _)| name == "PWD").collect();
    assert_eq!(pwd, [&("PWD".into(), "/tmp".into())]);

    drop(files);
    assert_eq!(fs::read_dir(&runtime).unwrap().count(), 0);
}

#[test]
fn a_file_cannot_be_written_elsewhere() {
    let runtime = tempfile::tempdir().unwrap();
    for name in ["../b", "a/b", "/tmp/b", "..", "b/", ""] {
        let mut launch = Launch::new("agent", &SessionConfig::default());
        launch.file(name, "");
        let error = prepare(&launch, "/bin/agent".into(), runtime.path(), None).unwrap_err();
        assert!(error.to_string().ends_with("not a plain name"), "{error}");
    }
    assert_eq!(fs::read_dir(runtime.path()).unwrap().count(), 0);
}

#[test]
fn what_a_killed_gateway_left_is_removed() {
    let runtime = tempfile::tempdir().unwrap();
    let mut launch = Launch::new("agent", &SessionConfig::default());
    launch.file("a", "");
    let (_spawn, files) = prepare(&launch, "/bin/agent".into(), runtime.path(), None).unwrap();
    let left = runtime.path().join("launch-0");
    fs::create_dir(&left).unwrap();
    fs::write(left.join("mcp.json"), "secret").unwrap();
    LaunchFiles::sweep(runtime.path());
    assert!(!left.exists());
    assert_eq!(fs::read_dir(runtime.path()).unwrap().count(), 1, "what is in use stays");
    drop(files);
}

/// A reader of a list of directories would take it for two.
#[test]
fn a_list_of_directories_has_no_comma_in_it() {
    let place = tempfile::tempdir().unwrap();
    let runtime = place.path().join("a,b");
    let mut launch = Launch::new("agent", &SessionConfig::default());
    launch.file("a", "").option_of("--file", [ArgPart::File("a".to_owned())]);
    assert!(prepare(&launch, "/bin/agent".into(), &runtime, None).is_ok());
    launch.option_of("--all", [ArgPart::Directory]);
    let error = prepare(&launch, "/bin/agent".into(), &runtime, None).unwrap_err();
    assert!(error.to_string().contains("comma"), "{error}");
    assert_eq!(fs::read_dir(&runtime).unwrap().count(), 0);
}

/// A user's value that looks like one of our files reaches the program unchanged.
#[test]
fn what_a_user_says_is_not_filled_in() {
    let odd = "{file:mcp.json} {escaped:mcp.json} {file:} {quoted:mcp-a.sh} {file:image-1.png}";
    let config = serde_json::json!({
        "model": odd,
        "systemPrompt": odd,
        "additionalDirectories": [odd],
        "env": { "ODD": odd },
        "mcpServers": { "a": { "command": odd, "args": [odd], "env": { "B": odd } } },
    });
    let mut config: SessionConfig = serde_json::from_value(config).unwrap();
    for name in ["claude", "codex", "codex-exec", "gemini"] {
        // Each takes what it supports.
        config.mcp_servers = config.mcp_servers.filter(|_| name != "gemini");
        config.native_args = (name == "claude").then(|| vec![format!("--odd={odd}")]);
        let image = Image { media_type: "image/png".to_owned(), data: "////".to_owned() };
        let prompt = Prompt { images: vec![image], ..Prompt::text(odd) };
        let start = Start {
            config: &config,
            resume: None,
            fork: false,
            native_session_id: None,
            prompt: Some(&prompt),
        };
        let dialect = agentwire_dialects::agent(name).unwrap();
        let launch = dialect.launch(&start).unwrap();
        let place = tempfile::tempdir().unwrap();
        let (spawn, _files) = prepare(&launch, "/bin/agent".into(), place.path(), None).unwrap();
        let odd_args = spawn.args.iter().filter(|arg| arg.to_string_lossy().contains("{file:"));
        assert!(odd_args.clone().all(|arg| arg.to_string_lossy().contains(odd)), "{name}");
        assert_eq!(odd_args.count() > 0, name != "codex", "{name}");
        assert!(spawn.env.contains(&("ODD".into(), odd.into())), "{name}");
        let system = spawn.env.iter().find(|(name, _)| name == "GEMINI_SYSTEM_MD");
        assert_eq!(system.is_some(), name == "gemini");
        if let Some((_, path)) = system {
            assert_eq!(fs::read_to_string(path).unwrap(), odd);
        }
        // Our own files are filled in anyway.
        let ours = place.path().to_str().unwrap();
        let named = spawn.args.iter().any(|arg| arg.to_string_lossy().contains(ours));
        assert_eq!(named, name != "codex", "{name}");
    }
}
