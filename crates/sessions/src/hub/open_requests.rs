//! Open requests of agents, whichever process runs them.

use agentwire_protocol::{Event, GatewayError, OpenRequest, SessionId};

use super::Hub;
use crate::store::{Filter, Record, Store, StoreError};

impl Hub {
    /// The open requests, oldest first: of one session, or of all.
    pub async fn open_requests(
        &self,
        of: Option<&SessionId>,
    ) -> Result<Vec<OpenRequest>, GatewayError> {
        // The record has a request before anyone can have seen it.
        let records = match of {
            Some(id) => vec![self.record(id).await?],
            None => self.records(Filter { live: true, ..Filter::default() }).await?,
        };
        let asks = |record: &Record| !record.open.requests.is_empty();
        let asking: Vec<Record> = records.into_iter().filter(asks).collect();
        if asking.is_empty() {
            return Ok(Vec::new());
        }
        let raised = self.read_store(move |store| {
            let mut requests = Vec::new();
            for record in &asking {
                for seq in record.open.requests.values().filter_map(|by| by.seq) {
                    requests.extend(raised(store, &record.summary.id, seq)?);
                }
            }
            Ok(requests)
        });
        let mut requests = raised.await?;
        requests.sort_by(|a, b| {
            (&a.raised_at, &a.session_id, a.seq).cmp(&(&b.raised_at, &b.session_id, b.seq))
        });
        Ok(requests)
    }

    pub async fn open_request(
        &self,
        session: &SessionId,
        request: &str,
    ) -> Result<Option<OpenRequest>, GatewayError> {
        let record = self.record(session).await?;
        let Some(seq) = record.open.requests.get(request).and_then(|by| by.seq) else {
            return Ok(None);
        };
        let session = session.clone();
        self.read_store(move |store| raised(store, &session, seq)).await
    }
}

/// The request that this event raised.
fn raised(
    store: &dyn Store,
    session: &SessionId,
    seq: u64,
) -> Result<Option<OpenRequest>, StoreError> {
    let batches = store.read(session, seq.saturating_sub(1), 1)?;
    let mut lines = batches.iter().flat_map(|batch| batch.events());
    let line = lines.find(|(number, _)| *number == seq).map(|(_, line)| line);
    let event = line.and_then(|line| std::str::from_utf8(line).ok());
    let event = event.and_then(|text| Event::from_json(text).ok());
    Ok(event.and_then(|event| OpenRequest::of(&event)))
}
