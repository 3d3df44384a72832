//! Serves the unified protocol: many sessions on one connection.

use std::collections::BTreeMap;

use agentwire_protocol::reply::{Attached, DoneFrame, ErrorFrame};
use agentwire_protocol::{
    Call, Command, CommandFrame, ErrorCode, Frame, GatewayError, Inquiry, InquiryFrame, Json,
    NewSession, Profile, Resume, SessionId, SessionSummary, strict,
};
use serde::Deserialize;

use crate::front::{Front, GatewayCall, GatewayQuery, GatewayReply, GatewayResult, Outbox};

#[derive(Debug, Default)]
pub struct Unified {
    calls: BTreeMap<Call, PendingCall>,
    profiles: BTreeMap<SessionId, Profile>,
    /// The session of the connection, if it is for one session.
    watched: Option<WatchedSession>,
}

#[derive(Debug)]
struct WatchedSession {
    session: SessionId,
    /// The last event that the client has seen, and the last one in the log.
    after: u64,
    last: u64,
    /// The last event that was shown.
    shown: u64,
}

/// A call that waits for its reply.
#[derive(Debug)]
struct PendingCall {
    id: Option<Json<'static>>,
    then: ReplyAction,
}

#[derive(Debug)]
enum ReplyAction {
    Reply,
    /// Show the session's events in that profile, after that number or from the start of the run.
    Follow(Profile, Option<u64>),
}

/// The fields of a frame that do not concern the session.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FrameOptions {
    #[serde(default)]
    profile: Profile,
    /// Sent twice, it counts once.
    idempotency_key: Option<String>,
}

impl Unified {
    /// A client whose connection is for one session: it sees the events after that number, and its commands
    /// need not name the session. `last` is the number of the last event in the log.
    pub fn watching(session: SessionId, after: u64, last: u64, profile: Profile) -> Self {
        let profiles = BTreeMap::from([(session.clone(), profile)]);
        let watched = Some(WatchedSession { session, after, last, shown: after.min(last) });
        Self { calls: BTreeMap::new(), profiles, watched }
    }

    fn frame(
        &mut self,
        text: &str,
        frame: CommandFrame,
        out: &mut Outbox,
    ) -> Result<(), RefusedFrame> {
        let CommandFrame { id, session_id, command } = frame;
        let own = self.watched.as_ref().map(|watched| watched.session.to_string());
        let session_id = session_id.or(own);
        let refused = |error| RefusedFrame { id: id.clone(), error };
        let (ask, then) = match command {
            Command::Start(request) => {
                let FrameOptions { profile, idempotency_key: key } =
                    aside(text).map_err(refused)?;
                let mut new = NewSession { key, ..NewSession::from(*request) };
                if profile == Profile::Core {
                    new.config.fail_at_limits();
                }
                (GatewayCall::Start(Box::new(new)), ReplyAction::Follow(profile, None))
            }
            Command::Attach { after } => {
                let FrameOptions { profile, .. } = aside(text).map_err(refused)?;
                let session = named(session_id).map_err(refused)?;
                (GatewayCall::Session(session), ReplyAction::Follow(profile, Some(after)))
            }
            command @ (Command::Prompt(_)
            | Command::Interrupt { .. }
            | Command::Stop
            | Command::Finish
            | Command::Settle(_)
            | Command::Configure(_)
            | Command::Query { .. }
            | Command::Rewind { .. }
            | Command::Queue
            | Command::Cancel { .. }
            | Command::Edit { .. }) => {
                let session = named(session_id).map_err(refused)?;
                (GatewayCall::Command(session, command), ReplyAction::Reply)
            }
        };
        let call = out.call(ask);
        self.calls.insert(call, PendingCall { id, then });
        Ok(())
    }

    fn inquiry(&mut self, InquiryFrame { id, inquiry }: InquiryFrame, out: &mut Outbox) {
        let look = match inquiry {
            Inquiry::List(query) => GatewayQuery::Sessions(query),
            Inquiry::Label(session, change) => GatewayQuery::Label(session, change),
            Inquiry::Show(session) => GatewayQuery::Session(session),
            Inquiry::Usage(query) => GatewayQuery::Usage(query),
            Inquiry::Search(query) => GatewayQuery::Search(query),
            Inquiry::Requests(session) => GatewayQuery::Requests(session),
            Inquiry::Watch { after } => {
                out.send_json(&DoneFrame { id: &id, reply: Json::EMPTY });
                return out.watch(after);
            }
            Inquiry::Unwatch => {
                out.unwatch();
                return out.send_json(&DoneFrame { id: &id, reply: Json::EMPTY });
            }
            Inquiry::Detach(session) => {
                self.profiles.remove(&session);
                out.unfollow(&session);
                return out.send_json(&DoneFrame { id: &id, reply: Json::EMPTY });
            }
        };
        let call = out.call(GatewayCall::Query(look));
        self.calls.insert(call, PendingCall { id, then: ReplyAction::Reply });
    }

    fn follow(&mut self, id: &SessionId, profile: Profile, after: u64, out: &mut Outbox) {
        self.profiles.insert(id.clone(), profile);
        if let Some(watched) = self.watched.as_mut().filter(|watched| watched.session == *id) {
            watched.shown = after;
        }
        out.follow(id, after);
    }
}

impl Front for Unified {
    fn on_open(&mut self, out: &mut Outbox) {
        let Some(WatchedSession { session, after, last, .. }) = &self.watched else { return };
        let (resume, after) = Resume::of(*after, *last);
        if let Resume::Missing { .. } = resume {
            let error = GatewayError {
                details: Some(Json::of(&resume)),
                ..GatewayError::new(ErrorCode::Conflict, "the log has no such events")
            };
            out.send_json(&ErrorFrame { id: &None, error: &error });
        }
        out.follow(session, after);
    }

    fn on_line(&mut self, line: &[u8], out: &mut Outbox) {
        let Ok(text) = std::str::from_utf8(line) else {
            return refuse(ErrorCode::InvalidJson, "the line is not UTF-8", out);
        };
        if text.trim().is_empty() {
            return;
        }
        let taken = match Frame::from_json(text) {
            Ok(Frame::Command(frame)) => self.frame(text, frame, out),
            Ok(Frame::Inquiry(frame)) => return self.inquiry(frame, out),
            Err(error) => Err(RefusedFrame { id: error.id, error: error.error }),
        };
        if let Err(RefusedFrame { id, error }) = taken {
            out.send_json(&ErrorFrame { id: &id, error: &error });
        }
    }

    fn on_overlong(&mut self, bytes: u64, out: &mut Outbox) {
        let message = format!("a line of {bytes} bytes is too long; nothing of it was accepted");
        refuse(ErrorCode::InvalidMessage, &message, out);
    }

    fn on_reply(&mut self, call: Call, reply: GatewayResult, out: &mut Outbox) {
        let Some(PendingCall { id, then }) = self.calls.remove(&call) else { return };
        let reply = match reply {
            Ok(reply) => reply,
            Err(error) => return out.send_json(&ErrorFrame { id: &id, error: &error }),
        };
        let say_session = |session: &SessionSummary, out: &mut Outbox| {
            out.send_json(&DoneFrame { id: &id, reply: session });
        };
        match (reply, then) {
            (GatewayReply::Started { session, after }, ReplyAction::Follow(profile, _)) => {
                say_session(&session, out);
                self.follow(&session.id, profile, after, out);
            }
            (GatewayReply::Session(session), ReplyAction::Follow(profile, after)) => {
                let (resume, after) = Resume::of(after.unwrap_or(0), session.last_seq);
                let followed = session.id.clone();
                let reply = Attached { session: *session, resume };
                out.send_json(&DoneFrame { id: &id, reply });
                self.follow(&followed, profile, after, out);
            }
            (GatewayReply::Started { session, .. } | GatewayReply::Session(session), _) => {
                say_session(&session, out);
            }
            (GatewayReply::Done(value), _) => out.send_json(&DoneFrame { id: &id, reply: value }),
            (GatewayReply::Sessions(sessions), _) => {
                out.send_json(&DoneFrame { id: &id, reply: sessions });
            }
            (GatewayReply::Events { events, next, resume }, _) => {
                let fields =
                    [("events", events), ("next", Json::of(&next)), ("resume", Json::of(&resume))];
                let reply = BTreeMap::from(fields);
                out.send_json(&DoneFrame { id: &id, reply });
            }
        }
    }

    fn on_event(&mut self, session: &SessionId, event: &str, out: &mut Outbox) {
        if let Some(watched) = self.watched.as_mut().filter(|watched| watched.session == *session) {
            watched.shown += 1;
        }
        let profile = self.profiles.get(session).copied().unwrap_or_default();
        if let Some(shown) = profile.show_line(event) {
            out.send(shown.into_owned());
        }
    }

    fn passes(&self, session: &SessionId) -> bool {
        self.profiles.get(session).is_none_or(|profile| *profile == Profile::Full)
    }

    fn on_passed(&mut self, session: &SessionId, last: u64) {
        if let Some(watched) = self.watched.as_mut().filter(|watched| watched.session == *session) {
            watched.shown = last;
        }
    }

    fn on_change(&mut self, change: &str, out: &mut Outbox) {
        out.send(format!(r#"{{"watch":{change}}}"#));
    }

    fn on_watch_lost(&mut self, error: GatewayError, out: &mut Outbox) {
        out.send_json(&ErrorFrame { id: &None, error: &error });
    }

    fn on_lost(&mut self, session: &SessionId, mut error: GatewayError, out: &mut Outbox) {
        self.profiles.remove(session);
        error.details = Some(Json::of(&BTreeMap::from([("sessionId", session)])));
        out.send_json(&ErrorFrame { id: &None, error: &error });
    }

    fn on_end(&mut self, session: &SessionId, out: &mut Outbox) {
        match &self.watched {
            // This client wants to see it again, no matter who resumes it.
            Some(watched) if watched.session == *session => out.wait_for(session, watched.shown),
            Some(_) | None => drop(self.profiles.remove(session)),
        }
    }
}

struct RefusedFrame {
    id: Option<Json<'static>>,
    error: GatewayError,
}

fn refuse(code: ErrorCode, message: &str, out: &mut Outbox) {
    let error = GatewayError::new(code, message);
    out.send_json(&ErrorFrame { id: &None, error: &error });
}

fn aside(text: &str) -> Result<FrameOptions, GatewayError> {
    let invalid =
        |what: String| GatewayError::invalid(format!("failed to read the command: {what}"));
    let aside: FrameOptions = strict::read(text).map_err(invalid)?;
    if aside.idempotency_key.as_ref().is_some_and(|key| !NewSession::is_key(key)) {
        let most = NewSession::KEY_LIMIT;
        let what = format!("idempotencyKey: it must be text of 1 to {most} characters");
        return Err(invalid(what));
    }
    Ok(aside)
}

fn named(session: Option<String>) -> Result<SessionId, GatewayError> {
    session
        .map(SessionId::from)
        .ok_or_else(|| GatewayError::invalid("the command needs a sessionId"))
}
