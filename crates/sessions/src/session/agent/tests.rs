//! A process that has ended is read to its end once there is room.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use agentwire_dialects::driver;

use super::*;
use crate::process::ContainmentChoice;

async fn start(script: &str, directory: &std::path::Path) -> Running {
    let config = SessionConfig::default();
    let mut launch = Launch::new("/bin/sh", &config);
    launch.words(&["-c", script]);
    launch.working_directory = Some(directory.display().to_string());
    launch.stdin = Stdin::Empty;
    let plan = Plan {
        agent: AgentType::Claude,
        dialect: driver(AgentType::Claude, None).unwrap(),
        command: AgentCommand::default(),
        contain: Arc::new(
            Contain::probe(None, ContainmentChoice::Auto).await.expect("a process group"),
        ),
        pinned_dirs: Arc::default(),
        settings: Arc::default(),
        offers: BTreeMap::new(),
        budget: Budget::default(),
    };
    plan.start(&config, launch).await.unwrap()
}

/// Output that is available is not read before it may be.
#[tokio::test]
async fn a_process_that_is_gone_is_read_when_there_is_room() {
    let directory = tempfile::tempdir().unwrap();
    let mut process = start("echo out; echo err >&2", directory.path()).await;
    let mut is_gone = false;
    while !is_gone {
        match process.next(false).await {
            ProcessActivity::Exited(exit) => process.exited(exit),
            ProcessActivity::Gone => {
                is_gone = true;
                process.gone();
            }
            other => panic!("nothing may be read: {other:?}"),
        }
    }
    {
        let mut next = pin!(process.next(false));
        let waits = poll_fn(|context| Poll::Ready(next.as_mut().poll(context).is_pending()));
        assert!(waits.await);
    }
    let (mut out, mut err) = (Vec::new(), Vec::new());
    while !process.is_ended() {
        let activity = process.next(true).await;
        SCRATCH.with_borrow(|buffer| match activity {
            ProcessActivity::Stdout(count) => {
                out.extend_from_slice(&buffer[..count]);
                process.heard(count);
            }
            ProcessActivity::Stderr(0) => process.close_stderr(),
            ProcessActivity::Stderr(count) => err.extend_from_slice(&buffer[..count]),
            other => panic!("the process is gone: {other:?}"),
        });
    }
    assert_eq!((out, err), (b"out\n".to_vec(), b"err\n".to_vec()));
}
