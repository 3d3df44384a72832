//! Trace settings, from OpenTelemetry's standard environment variables.

use std::time::Duration;

use http::{HeaderName, HeaderValue, Uri};

use super::spans::TraceOptions;

/// The endpoint if traces are on and no endpoint is given.
const USUAL: &str = "http://localhost:4318";

#[derive(Clone, Debug)]
pub struct Settings {
    pub endpoint: Uri,
    pub encoding: Encoding,
    pub headers: Vec<(HeaderName, HeaderValue)>,
    pub timeout: Duration,
    /// How long spans wait for others to be sent with them.
    pub delay: Duration,
    /// The largest number of spans to send at once.
    pub batch: usize,
    pub queue: usize,
    /// Attributes that describe this program.
    pub resource: Vec<(String, String)>,
    pub options: TraceOptions,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// `http/protobuf`
    Protobuf,
    /// `http/json`
    Json,
}

impl Settings {
    /// Reads the variables. `None` if tracing is off.
    pub fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Option<Self>, String> {
        let variable = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        // A variable for traces takes precedence over the one for all signals.
        let either = |name: &str| {
            variable(&format!("OTEL_EXPORTER_OTLP_TRACES_{name}"))
                .or_else(|| variable(&format!("OTEL_EXPORTER_OTLP_{name}")))
        };
        let is_true = |name: &str| {
            variable(name).is_some_and(|value| value.trim().eq_ignore_ascii_case("true"))
        };
        if is_true("OTEL_SDK_DISABLED") {
            return Ok(None);
        }
        let Some(place) = place(variable)? else { return Ok(None) };
        let encoding = match either("PROTOCOL").as_deref().map(str::trim) {
            None | Some("http/protobuf") => Encoding::Protobuf,
            Some("http/json") => Encoding::Json,
            Some(other) => {
                return Err(format!(
                    "OTEL_EXPORTER_OTLP_PROTOCOL is {other}; use http/protobuf or http/json"
                ));
            }
        };
        let whole = |name: &str, text: Option<String>, usual: u64| match text {
            None => Ok(usual),
            Some(text) => text.trim().parse().map_err(|_| format!("{name} is not a whole number")),
        };
        let number = |name: &str, usual| whole(name, variable(name), usual);
        let at_most = whole("OTEL_EXPORTER_OTLP_TIMEOUT", either("TIMEOUT"), 10_000)?;
        let queue = number("OTEL_BSP_MAX_QUEUE_SIZE", 2048)?.clamp(1, 65_536) as usize;
        let batch = number("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", 512)?.clamp(1, 4096) as usize;
        let Some(sampled) = sampled(
            variable("OTEL_TRACES_SAMPLER").as_deref().map(str::trim),
            variable("OTEL_TRACES_SAMPLER_ARG").as_deref().map(str::trim),
        )?
        else {
            return Ok(None);
        };
        let name = variable("OTEL_SERVICE_NAME");
        Ok(Some(Self {
            endpoint: endpoint(&place)?,
            encoding,
            headers: headers(&either("HEADERS").unwrap_or_default())?,
            timeout: Duration::from_millis(at_most),
            delay: Duration::from_millis(number("OTEL_BSP_SCHEDULE_DELAY", 5000)?),
            batch: batch.min(queue),
            queue,
            resource: resource(&variable("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default(), name),
            options: TraceOptions {
                sampled,
                content: is_true("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"),
            },
        }))
    }
}

/// Where traces are sent, if they are on.
fn place(variable: impl Fn(&str) -> Option<String>) -> Result<Option<String>, String> {
    let exporter = variable("OTEL_TRACES_EXPORTER");
    let own = variable("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
    let base = variable("OTEL_EXPORTER_OTLP_ENDPOINT");
    match (exporter.as_deref().map(str::trim), own, base) {
        (Some("none"), _, _) | (None, None, None) => Ok(None),
        (Some("otlp") | None, Some(own), _) => Ok(Some(own)),
        (Some("otlp") | None, None, Some(base)) => Ok(Some(traces_under(&base))),
        (Some("otlp"), None, None) => Ok(Some(traces_under(USUAL))),
        (Some(other), _, _) => Err(format!("OTEL_TRACES_EXPORTER is {other}; use otlp or none")),
    }
}

fn traces_under(base: &str) -> String {
    format!("{}/v1/traces", base.trim().trim_end_matches('/'))
}

/// Errors do not show the value: it may contain a password.
fn endpoint(text: &str) -> Result<Uri, String> {
    let uri: Uri = text.trim().parse().map_err(|_| "the endpoint for traces is not a URL")?;
    match (uri.scheme_str(), uri.host()) {
        (Some("http"), Some(_)) => Ok(uri),
        (Some("https"), _) => {
            Err("traces can only be sent over http; use a collector on this machine to \
                 forward them over https"
                .to_owned())
        }
        _ => Err("the endpoint for traces must start with http://".to_owned()),
    }
}

/// The fraction of traces to make, as the upper bound for half of the trace id; none if no trace is ever
/// made.
fn sampled(sampler: Option<&str>, argument: Option<&str>) -> Result<Option<u64>, String> {
    const ALL: u64 = 1 << 63;
    match sampler.unwrap_or("parentbased_always_on") {
        "always_on" | "parentbased_always_on" => Ok(Some(ALL)),
        "always_off" | "parentbased_always_off" => Ok(None),
        "traceidratio" | "parentbased_traceidratio" => {
            let ratio: f64 = argument
                .unwrap_or("1")
                .parse()
                .ok()
                .filter(|ratio| (0.0..=1.0).contains(ratio))
                .ok_or("OTEL_TRACES_SAMPLER_ARG must be from 0 to 1")?;
            Ok(Some((ratio * ALL as f64) as u64).filter(|bound| *bound > 0))
        }
        other => Err(format!("OTEL_TRACES_SAMPLER is {other}, which is not a known sampler")),
    }
}

/// Errors do not show the values: they may be secret.
fn headers(text: &str) -> Result<Vec<(HeaderName, HeaderValue)>, String> {
    let mistake = || "OTEL_EXPORTER_OTLP_HEADERS is not a list of name=value pairs".to_owned();
    let read = pairs(text).map(|(name, value)| {
        let name: HeaderName = name.parse().map_err(|_| mistake())?;
        let mut value = HeaderValue::from_str(&value).map_err(|_| mistake())?;
        value.set_sensitive(true);
        Ok((name, value))
    });
    read.collect()
}

fn resource(text: &str, name: Option<String>) -> Vec<(String, String)> {
    let mut resource: Vec<(String, String)> = pairs(text).collect();
    let mut put = |key: &str, value: Option<String>, usual: &str| {
        if let Some(value) = value {
            resource.retain(|(known, _)| known != key);
            resource.push((key.to_owned(), value));
        } else if !resource.iter().any(|(known, _)| known == key) {
            resource.push((key.to_owned(), usual.to_owned()));
        }
    };
    put("service.name", name, "agentwire");
    put("service.version", None, env!("CARGO_PKG_VERSION"));
    resource
}

/// Parses `a=b,c=d`, with percent-encoded values.
fn pairs(text: &str) -> impl Iterator<Item = (String, String)> {
    text.split(',').filter_map(|pair| {
        let (name, value) = pair.split_once('=')?;
        Some((name.trim().to_owned(), decoded(value.trim())))
    })
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(place) = rest.find('%') {
        let (before, after) = rest.split_at(place);
        bytes.extend_from_slice(before.as_bytes());
        let byte = after.get(1..3).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(byte.unwrap_or(b'%'));
        rest = after.get(if byte.is_some() { 3 } else { 1 }..).unwrap_or_default();
    }
    bytes.extend_from_slice(rest.as_bytes());
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Option<Settings>, String> {
        Settings::read(|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    fn some(variables: &[(&str, &str)]) -> Settings {
        read(variables).expect("they are valid").expect("traces are wanted")
    }

    #[test]
    fn there_are_no_traces_unless_somebody_says_where_to() {
        let base = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://a:4318/");
        for variables in [
            vec![],
            vec![("OTEL_EXPORTER_OTLP_ENDPOINT", " ")],
            vec![("OTEL_SERVICE_NAME", "x")],
            vec![base, ("OTEL_SDK_DISABLED", "TRUE")],
            vec![base, ("OTEL_TRACES_EXPORTER", "none")],
            vec![base, ("OTEL_TRACES_SAMPLER", "always_off")],
            vec![base, ("OTEL_TRACES_SAMPLER", "traceidratio"), ("OTEL_TRACES_SAMPLER_ARG", "0")],
        ] {
            assert!(read(&variables).expect("they are valid").is_none(), "{variables:?}");
        }
        assert_eq!(some(&[base]).endpoint, "http://a:4318/v1/traces");
        let own = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://b/x");
        assert_eq!(some(&[base, own]).endpoint, "http://b/x");
        let usual = some(&[("OTEL_TRACES_EXPORTER", "otlp")]);
        assert_eq!(usual.endpoint, "http://localhost:4318/v1/traces");
    }

    #[test]
    fn variables_are_read_as_the_specification_has_them() {
        let settings = some(&[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://a"),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
            ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "Authorization=Basic%20eA==, x-b = 1"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "250"),
            ("OTEL_BSP_SCHEDULE_DELAY", "10"),
            ("OTEL_SERVICE_NAME", "mine"),
            ("OTEL_RESOURCE_ATTRIBUTES", "service.name=other,deployment.environment.name=te%2Cst"),
            ("OTEL_TRACES_SAMPLER", "parentbased_traceidratio"),
            ("OTEL_TRACES_SAMPLER_ARG", "0.5"),
            ("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true"),
        ]);
        assert_eq!(settings.encoding, Encoding::Json);
        let headers = settings.headers.iter();
        let headers = headers.map(|(name, value)| (name.as_str(), value.to_str().expect("text")));
        let headers: Vec<_> = headers.collect();
        assert_eq!(headers, [("authorization", "Basic eA=="), ("x-b", "1")]);
        assert!(!format!("{settings:?}").contains("eA=="));
        assert_eq!(settings.timeout, Duration::from_millis(250));
        assert_eq!((settings.options.sampled, settings.options.content), (1 << 62, true));
        let found = |key: &str| {
            let found = settings.resource.iter().find(|(known, _)| known == key);
            found.map(|(_, value)| value.as_str())
        };
        assert_eq!(found("service.name"), Some("mine"));
        assert_eq!(found("deployment.environment.name"), Some("te,st"));
        assert!(found("service.version").is_some());
    }

    #[test]
    fn what_cannot_be_done_is_said_without_secrets() {
        for (name, value) in [
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://user:geheim@a"),
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "geheim"),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "a b=geheim"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "soon"),
            ("OTEL_TRACES_EXPORTER", "jaeger"),
            ("OTEL_TRACES_SAMPLER", "some"),
            ("OTEL_BSP_SCHEDULE_DELAY", "-1"),
        ] {
            let usual = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://a");
            let variables = match name {
                "OTEL_EXPORTER_OTLP_ENDPOINT" => vec![(name, value)],
                _ => vec![usual, (name, value)],
            };
            let why = read(&variables).expect_err(name);
            assert!(!why.contains("geheim"), "{why}");
        }
    }
}
