//! Prompts that are longer than the agent accepts.

use agentwire_protocol::{AgentType, Command, ErrorCode, Prompt, SessionConfig};
use serde_json::{Value, json};

use crate::harness::{ACP, CODEX, EXEC, Session};

#[tokio::test]
async fn a_prompt_beyond_the_agents_limit_is_refused_with_the_limit() {
    let gemini = (AgentType::Gemini, include_str!("gemini.sh"));
    for (agent, driver, limit, unit) in [
        (CODEX, "app-server", 1 << 20, "characters"),
        (EXEC, "exec", 1 << 20, "characters"),
        (gemini, "stream-json", 8 << 20, "bytes"),
    ] {
        // Characters, not bytes.
        let letter = if unit == "characters" { "ß" } else { "s" };
        let long = letter.repeat(limit + 1);
        let config: SessionConfig = serde_json::from_value(json!({ "driver": driver })).unwrap();
        let error = Session::try_start(agent, config.clone(), &long).await.err().unwrap();
        assert_eq!(error.code, ErrorCode::InvalidMessage, "{driver}");
        let details = error.details.as_ref().unwrap().read::<Value>().unwrap();
        assert_eq!(details, json!({ "limit": limit, "unit": unit, "size": limit + 1 }));
        assert!(error.message.contains(&limit.to_string()), "{}", error.message);
        let session = Session::start(agent, config, "").await;
        let send = |text: String| session.handle.send(Command::Prompt(Prompt::text(text)));
        assert_eq!(send(long).await.unwrap_err().code, ErrorCode::InvalidMessage);
        send(letter.repeat(limit)).await.unwrap();
        session.end().await;
    }
    // If no limit is known, there is none.
    let session = Session::start(ACP, SessionConfig::default(), "").await;
    let long = Command::Prompt(Prompt::text("s".repeat(9 << 20)));
    session.handle.send(long).await.unwrap();
    session.end().await;
}
