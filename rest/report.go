package rest

import (
	"net/http"
	"slices"
	"strconv"

	"moorage/internal/jsontext"
	"moorage/internal/web"
)

// Types of reports from clients.
const (
	reportScan   = "scan-report"
	reportCommit = "commit-report"
)

// reportMetrics counts a client's report. It does not check whether the table exists, because
// clients send reports after every scan and ignore the response. If the report is invalid, the
// error is KindBadRequest. Source: REST specification, ReportMetricsRequest.
func (s *server) reportMetrics(w http.ResponseWriter, r *http.Request) error {
	ident, err := pathIdentifier(r, paramTable)
	if err != nil {
		return err
	}
	f, err := s.ReadFields(w, r, "metrics report")
	if err != nil {
		return err
	}
	f.Require("report-type")
	kind := f.Text("report-type")
	switch {
	case f.Failure != nil:
	case kind == reportScan:
		scanReport(f)
	case kind == reportCommit:
		commitReport(f)
	default:
		f.Fail("unknown report-type %q", kind)
	}
	if f.Failure != nil {
		return f.Failure
	}
	if err := s.catalogFor(r).ReportMetrics(r.Context(), ident); err != nil {
		return err
	}
	s.reports.WithLabelValues(kind).Inc()
	return web.AnswerNothing(w)
}

// scanReport fails f unless it is a ScanReport.
func scanReport(f *web.Fields) {
	anyReport(f)
	predicate(f, "filter")
	integer(f, "schema-id")
	f.Require("projected-field-ids")
	integers(f, "projected-field-ids")
	f.Require("projected-field-names")
	f.Texts("projected-field-names")
}

// commitReport fails f unless it is a CommitReport.
func commitReport(f *web.Fields) {
	anyReport(f)
	integer(f, "sequence-number")
	f.Require("operation")
	f.Text("operation")
}

// anyReport fails f unless it has the members of all reports.
func anyReport(f *web.Fields) {
	f.Require("table-name")
	f.Text("table-name")
	integer(f, "snapshot-id")
	f.Require("metrics")
	metricResults(f, "metrics")
	f.TextMap("metadata")
}

// predicate requires a member that can be a Predicate: a boolean, or an object with a type. It
// ignores the other members of the object.
func predicate(f *web.Fields, name string) {
	f.Require(name)
	value := f.Get(name)
	switch {
	case value.IsZero() || value.Type() == jsontext.Boolean:
	case value.Type() != jsontext.Object:
		f.Fail("member %q must be a boolean or an object, not %s", name, value.Type())
	default:
		inner := f.Within(value, "member", name)
		inner.Require("type")
		inner.Text("type")
		f.Keep(inner.Failure)
	}
}

// metricResults reads a Metrics object, whose members are CounterResults or TimerResults.
func metricResults(f *web.Fields, name string) {
	for metric, value := range f.Typed(name, jsontext.Object).Members() {
		inner := f.Within(value, "metric", string(metric))
		if inner.Failure == nil {
			metricResult(inner)
		}
		if inner.Failure != nil {
			f.Keep(inner.Failure)
			return
		}
	}
}

func metricResult(f *web.Fields) {
	switch {
	case isThere(f, "unit", "value"):
		f.Text("unit")
		integer(f, "value")
	case isThere(f, "time-unit", "count", "total-duration"):
		f.Text("time-unit")
		integer(f, "count")
		integer(f, "total-duration")
	default:
		f.Fail("it must have unit and value, or time-unit, count and total-duration")
	}
}

// isThere reports whether all members with these names are present.
func isThere(f *web.Fields, names ...string) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return f.Get(name).IsZero() })
}

// integer requires a member that is an integer of at most 64 bits.
func integer(f *web.Fields, name string) {
	f.Require(name)
	if value := f.Typed(name, jsontext.Number); !value.IsZero() && !isInteger(value) {
		f.Fail("member %q must be an integer of 64 bits", name)
	}
}

// integers fails f if a member is present but not a list of integers.
func integers(f *web.Fields, name string) {
	for element := range f.Typed(name, jsontext.Array).Elements() {
		if !isInteger(element) {
			f.Fail("member %q must be an array of integers", name)
			return
		}
	}
}

func isInteger(value jsontext.Checked) bool {
	_, err := strconv.ParseInt(string(value.Bytes()), 10, 64)
	return err == nil
}
