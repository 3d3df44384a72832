//! What an agent is started with, and why a start fails.

use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use agentwire_dialects::agent::Exit;
use agentwire_protocol::ErrorCode;
use agentwire_sessions::process::{
    Contain, Containment, ContainmentChoice, Spawn, SpawnError, StdinPlan, TreeSignal, Veil,
};
use rustix::io::{Errno, FdFlags, fcntl_setfd};
use tokio::time::timeout;

use crate::process::harness::{
    LONG, contain_all, contain_both, expect, keeper, marker, parent, pid, rest, shell, stat, tell,
    until,
};
use crate::shared::marked;

#[tokio::test]
async fn an_agent_gets_three_descriptors_that_block() {
    let leak = File::open("/dev/null").unwrap();
    fcntl_setfd(&leak, FdFlags::empty()).unwrap();
    let script = "ls /proc/$$/fd; grep -h flags /proc/$$/fdinfo/[012]";
    let contain = contain_both().await;
    let plans = [StdinPlan::Pipe, StdinPlan::Null];
    for (contain, stdin) in contain.iter().flat_map(|contain| plans.map(|plan| (contain, plan))) {
        let spawn = Spawn { stdin, ..shell(script, &marker()) };
        let mut process = contain.spawn(spawn).await.unwrap();
        assert_eq!(process.stdin.is_some(), stdin == StdinPlan::Pipe);
        let text = rest(&mut process).await;
        let (descriptors, flags) = text.split_once("flags").unwrap();
        assert_eq!(descriptors, "0\n1\n2\n");
        for flags in flags.split("flags") {
            let flags = u32::from_str_radix(flags.trim_start_matches(':').trim(), 8).unwrap();
            assert_eq!(flags & 0o4000, 0, "{text}");
        }
    }
}

#[tokio::test]
async fn an_agent_gets_the_environment_it_was_given() {
    for contain in contain_all().await {
        let env: Vec<(OsString, OsString)> = vec![
            ("EMPTY".into(), "".into()),
            ("LINES".into(), "a\nb=c".into()),
            ("ODD".into(), OsString::from_vec(vec![b'a', 0xff, 0xfe])),
        ];
        let spawn = Spawn {
            program: "/usr/bin/env".into(),
            args: vec!["-0".into()],
            env: env.clone(),
            directory: "/".into(),
            stdin: StdinPlan::Null,
            veil: Veil::default(),
        };
        let mut process = contain.spawn(spawn).await.unwrap();
        let mut bytes = Vec::new();
        tokio::io::AsyncReadExt::read_to_end(&mut process.stdout, &mut bytes).await.unwrap();
        let mut lines: Vec<&[u8]> = bytes.split(|byte| *byte == 0).collect();
        lines.sort_unstable();
        assert_eq!(lines, [&b""[..], b"EMPTY=", b"LINES=a\nb=c", b"ODD=a\xff\xfe"]);
    }
}

#[tokio::test]
async fn an_agent_is_in_a_session_of_its_own_without_a_terminal() {
    for contain in contain_both().await {
        let mut process = contain.spawn(shell("read -r line", &marker())).await.unwrap();
        let agent = pid(&process);
        let keeper = parent(agent).to_string();
        assert_ne!(
            Some(&keeper),
            stat(std::process::id().cast_signed(), 3).as_ref(),
            "our session"
        );
        assert_eq!(stat(agent, 2), Some(agent.to_string()), "its group");
        assert_eq!(stat(agent, 3), Some(keeper), "its session");
        assert_eq!(stat(agent, 4), Some("0".to_owned()), "its terminal");
        let status = fs::read_to_string(format!("/proc/{agent}/status")).unwrap();
        let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:\t")).unwrap();
        let ignored = u64::from_str_radix(ignored, 16).unwrap();
        assert_eq!(ignored & (1 << 12), 0, "a broken pipe ends it");
        tell(&mut process, "\n").await;
        assert_eq!(timeout(LONG, process.control.exited()).await.unwrap(), Exit::Code(0));
    }
}

#[tokio::test]
async fn long_arguments_and_environments_arrive_whole() {
    for contain in contain_both().await {
        let directory = tempfile::tempdir().unwrap();
        let mut spawn = shell("pwd; shift; printf %s \"$*\" | cksum; printenv | cksum", "");
        let args: Vec<String> = (0..8).map(|i| format!("{i}").repeat(60_000)).collect();
        let expected = args.join(" ");
        spawn.args.extend(args.iter().map(OsString::from));
        for i in 0..8 {
            spawn.env.push((format!("LONG{i}").into(), format!("{i}").repeat(100_000).into()));
        }
        spawn.directory = directory.path().canonicalize().unwrap();
        let mut process = contain.spawn(spawn.clone()).await.unwrap();
        let text = rest(&mut process).await;
        let plain = Command::new(&spawn.program)
            .args(&spawn.args)
            .env_clear()
            .envs(spawn.env.clone())
            .current_dir(&spawn.directory)
            .output()
            .unwrap();
        assert_eq!(text, String::from_utf8(plain.stdout).unwrap());
        assert!(text.contains(&expected.len().to_string()), "{text}");
    }
}

#[tokio::test]
async fn a_start_that_fails_says_why() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let write = |name: &str, mode| {
        fs::write(path(name), "echo\n").unwrap();
        fs::set_permissions(path(name), fs::Permissions::from_mode(mode)).unwrap();
    };
    write("plain", 0o644);
    write("headless", 0o755);
    let at = |name: &str| Spawn { program: path(name), ..shell("", "") };
    let within = |name: &str| Spawn { directory: path(name), ..shell("", "") };
    let long = Spawn { args: vec!["x".repeat(1 << 20).into()], ..shell("", "") };
    let nul = Spawn { args: vec!["a\0b".into()], ..shell("", "") };
    for contain in contain_all().await {
        let fail = async |spawn: &Spawn| contain.spawn(spawn.clone()).await.unwrap_err();
        for (spawn, errno, code) in [
            (at("missing"), Errno::NOENT, ErrorCode::AgentUnavailable),
            (at("plain"), Errno::ACCESS, ErrorCode::AgentUnavailable),
            (at("headless"), Errno::NOEXEC, ErrorCode::AgentUnavailable),
            (at("."), Errno::ACCESS, ErrorCode::AgentUnavailable),
            (long.clone(), Errno::TOOBIG, ErrorCode::StartFailed),
        ] {
            let error = fail(&spawn).await;
            let SpawnError::Program { program, error: cause } = &error else { panic!("{error:?}") };
            assert_eq!((program, error.code()), (&spawn.program, code));
            assert_eq!(cause.raw_os_error(), Some(errno.raw_os_error()), "{error}");
        }
        for (spawn, errno) in [(within("missing"), Errno::NOENT), (within("plain"), Errno::NOTDIR)]
        {
            let error = fail(&spawn).await;
            let SpawnError::Directory { directory, error: cause } = &error else {
                panic!("{error:?}")
            };
            assert_eq!((directory, error.code()), (&spawn.directory, ErrorCode::StartFailed));
            assert_eq!(cause.raw_os_error(), Some(errno.raw_os_error()), "{error}");
        }
        assert!(matches!(fail(&nul).await, SpawnError::Program { .. }));
    }
}

#[tokio::test]
async fn a_tree_stands_still_and_goes_on() {
    for contain in contain_both().await {
        let marker = marker();
        let script =
            "sleep 300 & (setsid sleep 300 &); echo ready; read -r line; echo \"$line\"; exit 4";
        let mut process = contain.spawn(shell(script, &marker)).await.unwrap();
        expect(&mut process, "ready").await;
        let all = |states: [&str; 2]| {
            let found = marked(&marker);
            found.len() == 3
                && found.iter().all(|(pid, _)| states.contains(&stat(*pid, 0).unwrap().as_str()))
        };
        until("all three wait", || all(["S", "S"])).await;
        process.control.signal(TreeSignal::Pause);
        until("all three stand still", || all(["T", "t"])).await;
        tell(&mut process, "again\n").await;
        process.control.signal(TreeSignal::Continue);
        assert_eq!(rest(&mut process).await, "again\n");
        assert_eq!(timeout(LONG, process.control.exited()).await.unwrap(), Exit::Code(4));
    }
}

#[tokio::test]
async fn an_agent_outlives_the_thread_that_started_it() {
    for contain in contain_both().await {
        let runtime = tokio::runtime::Handle::current();
        let spawn = shell("read -r line; exit 9", &marker());
        let start = move || runtime.block_on(contain.spawn(spawn)).unwrap();
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let thread = std::thread::spawn(move || sender.send(start()).unwrap());
        let mut process = timeout(LONG, receiver).await.unwrap().unwrap();
        thread.join().unwrap();
        tell(&mut process, "\n").await;
        assert_eq!(timeout(LONG, process.control.exited()).await.unwrap(), Exit::Code(9));
    }
}

#[tokio::test]
async fn an_orphan_below_an_agent_is_reaped_at_once() {
    for contain in contain_both().await {
        // The orphan's pid must disappear while the agent lives: many programs wait for that.
        let script = "pid=$( (sleep 0.05 >/dev/null & echo $!) ); \
                      while kill -0 $pid 2>/dev/null; do :; done; echo reaped";
        let mut process = contain.spawn(shell(script, &marker())).await.unwrap();
        assert_eq!(rest(&mut process).await, "reaped\n");
    }
}

#[tokio::test]
async fn a_probe_says_what_is_in_force() {
    let cases = [
        (None, "no keeper"),
        (Some("/bin/true".into()), "/bin/true"),
        (Some("/nowhere/agentwire".into()), "/nowhere/agentwire"),
    ];
    for (executable, word) in cases {
        let contain = Contain::probe(executable, ContainmentChoice::Auto).await.unwrap();
        let Containment::ProcessGroup { reason } = contain.containment() else {
            panic!("{contain:?}")
        };
        assert!(reason.contains(word), "{reason}");
    }
}

#[tokio::test]
async fn what_does_not_work_is_refused_if_it_is_asked_for() {
    for choice in [ContainmentChoice::Namespace, ContainmentChoice::Keeper] {
        for executable in [None, Some("/bin/true".into())] {
            let error = Contain::probe(executable, choice).await.unwrap_err();
            assert_eq!(error.code, ErrorCode::Unsupported);
            assert!(error.message.contains("containment"), "{}", error.message);
        }
    }
}

#[test]
fn a_keeper_by_hand_says_what_it_is() {
    let output = Command::new(keeper()).arg("keeper").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("started by agentwire itself"), "{text}");
}

/// A shell without job control lets what it starts in the background ignore interrupts.
#[test]
fn an_agent_heeds_interrupts_that_the_gateway_ignores() {
    let output = Command::new("/bin/sh")
        .args(["-c", "trap '' INT QUIT; exec \"$@\"", "sh"])
        .arg(std::env::current_exe().expect("a program"))
        .args(["--exact", "process::start::an_interrupt_that_the_gateway_ignores", "--ignored"])
        .output()
        .expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[tokio::test]
#[ignore = "run by an_agent_heeds_interrupts_that_the_gateway_ignores"]
async fn an_interrupt_that_the_gateway_ignores() {
    for contain in contain_both().await {
        let mut process =
            contain.spawn(shell("echo ready; exec sleep 300", &marker())).await.unwrap();
        expect(&mut process, "ready").await;
        process.control.signal(TreeSignal::Interrupt);
        let exit = timeout(LONG, process.control.exited()).await.unwrap();
        assert_eq!(exit, Exit::Signal(2));
    }
}
