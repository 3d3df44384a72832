//! `PreToolUse` for a call that the agent asks about long after it has reported it.

use agentwire_protocol::event::{EventKind, RequestKind, RequestOutcome, Status};

use crate::harness::{ACP, Session, carriers, config, count, decision, hooks};

/// Asks about a call that it reported before, once the file `ask` exists.
fn late() -> String {
    let call = r#"\"toolCallId\":\"c1\",\"status\":\"pending\",\"title\":\"touch made\",\"kind\":\"execute\",\"rawInput\":{\"command\":\"touch made\"}"#;
    let told = format!(
        "        update \"{{\\\"sessionUpdate\\\":\\\"tool_call\\\",{call}}}\"\n        until [ -e ask ]; do sleep 0.05; done\n"
    );
    let script = ACP.1.replace("        prompt=$id\n", &format!("        prompt=$id\n{told}"));
    let (before, after) = script.split_once(r#"\"toolCall\":{"#).unwrap();
    let (_, after) = after.split_once("]}}}\" ;;").unwrap();
    format!("{before}\\\"toolCall\\\":{{{call}}}}}}}\" ;;{after}")
}

#[tokio::test]
async fn an_agent_that_asks_late_is_answered_by_the_hook_that_was_told_of_the_call() {
    let script = late();
    for answered_first in [true, false] {
        for word in ["deny", "allow"] {
            let mut session =
                Session::start((ACP.0, &script), config(&hooks(&["PreToolUse"])), "x").await;
            let hook = session.hook("PreToolUse").await;
            let ask = session.work().join("ask");
            if answered_first {
                session.answer(&hook, &decision(word, "because")).await;
                std::fs::write(ask, "").unwrap();
            } else {
                std::fs::write(ask, "").unwrap();
                session
                    .until(|kind| match kind {
                        EventKind::StatusChanged(status) if status.status == Status::Waiting => {
                            Some(())
                        }
                        _ => None,
                    })
                    .await;
                session.answer(&hook, &decision(word, "because")).await;
            }
            let permission = session.request().await;
            assert_eq!(permission.kind, RequestKind::Permission);
            let settled = session.settled(&permission.request_id.decode()).await;
            assert_eq!(settled.outcome == RequestOutcome::Denied, word == "deny");
            session.completed().await;
            let events = session.end().await;
            assert_eq!(count(&events, |kind| matches!(kind, EventKind::RequestRaised(_))), 2);
            let warns = |kind: &EventKind<'_>| match kind {
                EventKind::StatusChanged(status) => status.status == Status::Warning,
                _ => false,
            };
            assert_eq!(count(&events, warns), 0);
            assert_eq!(carriers(&events, "session/request_permission").len(), 1);
        }
    }
}
