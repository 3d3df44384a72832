//! The rows: what a user does with an agent, and what must happen.

mod bad_input;
mod changes;
mod emulated;
mod endings;
mod failures;
mod fronts;
mod guards;
mod pages;
mod permissions;
mod program_behaviour;
mod programs;
mod projects;
mod requests;
mod rules;
mod sessions;
mod tools;
mod turns;
mod unexpected;

use crate::harness::Place;

pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    /// Panics if it fails.
    pub(crate) run: fn(&mut Place),
    /// Whether the first failure counts.
    pub(crate) is_strict: bool,
}

/// The programs are not ours: a scenario that passes at the second attempt is reported, but is not a
/// failure.
const fn retried(name: &'static str, run: fn(&mut Place)) -> Scenario {
    Scenario { name, run, is_strict: false }
}

/// A row about permissions, rules, trust or secrets: getting past them even once is a breach.
const fn strict(name: &'static str, run: fn(&mut Place)) -> Scenario {
    Scenario { name, run, is_strict: true }
}

pub(crate) const SCENARIOS: &[Scenario] = &[
    retried("text", turns::text),
    retried("thinking", turns::thinking),
    retried("follow-up", turns::follow_up),
    retried("image", turns::image),
    retried("structured output", turns::structured),
    retried("system prompt", emulated::system_prompt),
    retried("system prompt, more", emulated::further_prompt),
    retried("usage", turns::usage),
    retried("shell", tools::shell),
    retried("file written", tools::write),
    retried("file edited", tools::edit),
    retried("parallel tools", tools::parallel),
    retried("MCP server", tools::server),
    retried("client's MCP server", tools::hosted),
    retried("subagent", tools::subagent),
    retried("plan", tools::plan),
    strict("allow", requests::allow),
    strict("changed input", requests::changed),
    strict("changed input refused", emulated::changed_refused),
    strict("deny", requests::deny),
    retried("question", requests::question),
    strict("nobody to ask", requests::nobody),
    strict("rules in every mode", permissions::blocked),
    strict("blocked shell", rules::blocked_shell),
    strict("blocked edit", rules::blocked_edit),
    strict("protected files", permissions::protected),
    strict("always is exact", permissions::always),
    strict("always, every kind of call", permissions::always_one_call),
    strict("agentwire's own files", guards::own_files),
    strict("`askDangerous` changes nothing", guards::dangerous),
    strict("planted Git settings", guards::planted_git_settings),
    strict("links that lead outside", guards::links_outside),
    strict("relative path after `cd`", guards::relative_after_cd),
    strict("arguments that unguard", guards::arguments),
    strict("sandbox missing", permissions::sandbox),
    strict("secrets, command line", rules::command_line),
    retried("interrupt, text", endings::mid_text),
    retried("interrupt, tool", endings::mid_tool),
    retried("interrupt, asking", endings::asking),
    retried("stop, tool", endings::stop),
    retried("model change", changes::model),
    strict("mode change", changes::mode),
    retried("resume", sessions::resume),
    retried("fork", sessions::fork),
    retried("resume, files gone", unexpected::lost),
    retried("resume, another opened", program_behaviour::mistaken),
    retried("queued prompts", unexpected::queued),
    retried("hostile prompts", program_behaviour::hostile),
    retried("malformed line", program_behaviour::malformed),
    retried("background turn", program_behaviour::background),
    retried("`/clear`", program_behaviour::cleared),
    retried("whole output", program_behaviour::output),
    retried("web search", program_behaviour::two_ids),
    strict("trusted project", program_behaviour::trusted),
    strict("project settings left out", projects::distrusted),
    strict("project settings above", projects::above),
    strict("project settings trusted", projects::trusted),
    retried("launcher", program_behaviour::launcher),
    retried("endless text", program_behaviour::repeats),
    retried("exit codes", program_behaviour::exit_codes),
    retried("API error", failures::refused),
    retried("retries", failures::retried),
    retried("rate limit", failures::limited),
    retried("broken stream", failures::cut),
    retried("program missing", bad_input::missing),
    retried("not signed in", bad_input::signed_out),
    retried("wrong model", bad_input::wrong_model),
    retried("no network", bad_input::no_network),
    retried("retries reported", bad_input::told),
    retried("interrupt, retrying", bad_input::retrying),
    retried("crash at start", bad_input::crash),
    retried("flag or settings refused", bad_input::broken),
    retried("silent at start", bad_input::silent),
    retried("`agentwire agents`", programs::login),
    retried("`agentwire run`", turns::run),
    retried("`agentwire unified`", fronts::unified),
    retried("`agentwire claude`", fronts::claude),
    retried("`agentwire backend`", fronts::backend),
    retried("`agentwire rpc`", fronts::rpc),
    retried("`/insights`", pages::insights),
    retried("`/api/sessions`, the board", pages::board),
];
