package rest

import (
	"net/http"
	"slices"
	"strconv"

	"moorage/internal/jsontext"
)

// Types of reports that clients send.
const (
	reportScan   = "scan-report"
	reportCommit = "commit-report"
)

// reportMetrics takes note that a client sent a report. Whether the table exists is not looked
// at: clients send reports after every scan and ignore the answer. A report that is none is KindBadRequest.
// Source: REST specification, ReportMetricsRequest.
func (s *server) reportMetrics(w http.ResponseWriter, r *http.Request) error {
	if _, err := pathIdentifier(r, paramTable); err != nil {
		return err
	}
	f, err := s.readFields(w, r, "metrics report")
	if err != nil {
		return err
	}
	f.require("report-type")
	kind := f.text("report-type")
	switch {
	case f.failure != nil:
	case kind == reportScan:
		f.scanReport()
	case kind == reportCommit:
		f.commitReport()
	default:
		f.fail("unknown report-type %q", kind)
	}
	if f.failure != nil {
		return f.failure
	}
	s.metrics.reports.WithLabelValues(kind).Inc()
	return answerNothing(w)
}

// scanReport makes it a failure that f is no ScanReport.
func (f *fields) scanReport() {
	f.anyReport()
	f.predicate("filter")
	f.integer("schema-id")
	f.require("projected-field-ids")
	f.integers("projected-field-ids")
	f.require("projected-field-names")
	f.texts("projected-field-names")
}

// commitReport makes it a failure that f is no CommitReport.
func (f *fields) commitReport() {
	f.anyReport()
	f.integer("sequence-number")
	f.require("operation")
	f.text("operation")
}

// anyReport makes it a failure that f lacks what all reports have.
func (f *fields) anyReport() {
	f.require("table-name")
	f.text("table-name")
	f.integer("snapshot-id")
	f.require("metrics")
	f.metricResults("metrics")
	f.textMap("metadata")
}

// predicate requires a member that may be a Predicate: a boolean, or an object with a type. Of which parts it is made does not matter here.
func (f *fields) predicate(name string) {
	f.require(name)
	value := f.get(name)
	switch {
	case value.IsZero() || value.Type() == jsontext.Boolean:
	case value.Type() != jsontext.Object:
		f.fail("member %q must be a boolean or an object, not %s", name, value.Type())
	default:
		inner := f.within(value, place{what: "member", name: name})
		inner.require("type")
		inner.text("type")
		f.keep(inner.failure)
	}
}

// metricResults reads a Metrics object, each member of which is a CounterResult or a TimerResult.
func (f *fields) metricResults(name string) {
	for metric, value := range f.typed(name, jsontext.Object).Members() {
		inner := f.within(value, place{what: "metric", name: string(metric)})
		if inner.failure == nil {
			inner.metricResult()
		}
		if inner.failure != nil {
			f.keep(inner.failure)
			return
		}
	}
}

func (f *fields) metricResult() {
	switch {
	case f.isThere("unit", "value"):
		f.text("unit")
		f.integer("value")
	case f.isThere("time-unit", "count", "total-duration"):
		f.text("time-unit")
		f.integer("count")
		f.integer("total-duration")
	default:
		f.fail("it must have unit and value, or time-unit, count and total-duration")
	}
}

// isThere reports whether all members of these names are there.
func (f *fields) isThere(names ...string) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return f.get(name).IsZero() })
}

// integer requires a member that is an integer of at most 64 bits.
func (f *fields) integer(name string) {
	f.require(name)
	if value := f.typed(name, jsontext.Number); !value.IsZero() && !isInteger(value) {
		f.fail("member %q must be an integer of 64 bits", name)
	}
}

// integers makes it a failure that a member is there and no list of integers.
func (f *fields) integers(name string) {
	for element := range f.typed(name, jsontext.Array).Elements() {
		if !isInteger(element) {
			f.fail("member %q must be an array of integers", name)
			return
		}
	}
}

func isInteger(value jsontext.Checked) bool {
	_, err := strconv.ParseInt(string(value.Bytes()), 10, 64)
	return err == nil
}
