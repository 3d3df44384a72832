//! The Prometheus text format.

use std::fmt::{Display, Write as _};

#[derive(Default)]
pub(super) struct PrometheusText {
    text: String,
    name: &'static str,
}

impl PrometheusText {
    /// Starts a family; the samples that follow belong to it. Only the names of counters end in `_total`.
    pub(super) fn family(&mut self, name: &'static str, help: &str) {
        self.head(name, if name.ends_with("_total") { "counter" } else { "gauge" }, help);
    }

    pub(super) fn single(&mut self, name: &'static str, help: &str, value: impl Display) {
        self.family(name, help);
        self.sample(&[], value);
    }

    /// A family with one sample for each value of its only label.
    pub(super) fn labeled<'v>(
        &mut self,
        name: &'static str,
        help: &str,
        label: &str,
        samples: impl IntoIterator<Item = (&'v str, impl Display)>,
    ) {
        self.family(name, help);
        for (value, count) in samples {
            self.sample(&[(label, value)], count);
        }
    }

    pub(super) fn sample(&mut self, labels: &[(&str, &str)], value: impl Display) {
        self.line("", labels, value);
    }

    /// Writes buckets (upper bound, number of values up to it), the count and the sum. `unit` is how many
    /// of the values' units make one of the family's.
    pub(super) fn histogram(
        &mut self,
        name: &'static str,
        help: &str,
        (buckets, count, sum): (Vec<(u64, u64)>, u64, u64),
        unit: f64,
    ) {
        self.head(name, "histogram", help);
        for (bound, up_to) in buckets {
            self.line("_bucket", &[("le", &(bound as f64 / unit).to_string())], up_to);
        }
        self.line("_bucket", &[("le", "+Inf")], count);
        self.line("_sum", &[], sum as f64 / unit);
        self.line("_count", &[], count);
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }

    fn head(&mut self, name: &'static str, kind: &str, help: &str) {
        self.name = name;
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn line(&mut self, suffix: &str, labels: &[(&str, &str)], value: impl Display) {
        let _ = write!(self.text, "{}{suffix}", self.name);
        for (index, (label, value)) in labels.iter().enumerate() {
            let _ = write!(self.text, "{}{label}=\"", if index == 0 { '{' } else { ',' });
            for character in value.chars() {
                match character {
                    '\\' => self.text.push_str("\\\\"),
                    '"' => self.text.push_str("\\\""),
                    '\n' => self.text.push_str("\\n"),
                    other => self.text.push(other),
                }
            }
            self.text.push('"');
        }
        if !labels.is_empty() {
            self.text.push('}');
        }
        let _ = writeln!(self.text, " {value}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_cannot_break_out_of_their_line() {
        let mut metrics = PrometheusText::default();
        metrics.family("x", "X.");
        metrics.sample(&[("a", "\"\\\n}"), ("b", "c")], 1.5);
        let expected = "# HELP x X.\n# TYPE x gauge\nx{a=\"\\\"\\\\\\n}\",b=\"c\"} 1.5\n";
        assert_eq!(metrics.into_text(), expected);
    }

    #[test]
    fn a_histogram_ends_with_all() {
        let mut metrics = PrometheusText::default();
        metrics.histogram(
            "t_seconds",
            "T.",
            (vec![(50_000, 1), (1_000_000_000, 2)], 3, 2_500_000_000),
            1e9,
        );
        let expected = "# HELP t_seconds T.\n# TYPE t_seconds histogram\n\
            t_seconds_bucket{le=\"0.00005\"} 1\nt_seconds_bucket{le=\"1\"} 2\n\
            t_seconds_bucket{le=\"+Inf\"} 3\nt_seconds_sum 2.5\nt_seconds_count 3\n";
        assert_eq!(metrics.into_text(), expected);
    }
}
