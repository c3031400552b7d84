package metadata

import (
	"bytes"
	"moorage/internal/jsontext"
	"testing"
)

func addSeeds(f *testing.F, seeds ...string) {
	f.Helper()
	for _, seed := range seeds {
		f.Add([]byte(seed))
	}
}

func schemaSeeds() []string {
	return []string{
		nested, columns, column(`"LONG"`), column(lists(5)), defaulted(`"double"`, `0.0`),
		defaulted(`"timestamptz_ns"`, `"2024-02-29T10:11:12.123456789+00:00"`), defaulted(`"decimal(9,2)"`, `"-1.20"`),
		defaulted(`"fixed[2]"`, `null`), defaulted(`"geography(EPSG:4326, karney)"`, `{}`),
		`{"type":"struct","identifier-field-ids":[1,1],"fields":[{"id":1,"name":"a.b","required":true,"type":"int"}]}`,
	}
}

// What parses is written again, under another id, as an equal schema.
func FuzzSchema(f *testing.F) {
	addSeeds(f, schemaSeeds()...)
	f.Fuzz(func(t *testing.T, raw []byte) {
		sent := bytes.Clone(raw)
		s, err := parseSchema(raw)
		if err != nil {
			return
		}
		for version := range formatVersionMax + 1 {
			if err := s.check(version); err != nil && len(err.Error()) > 3*problemsMax*jsontext.ClipBytes {
				t.Errorf("a message of %d bytes", len(err.Error()))
			}
		}
		written := s.withID(7)
		again, err := parseSchema(written)
		if err != nil {
			t.Fatalf("%s does not parse: %v", written, err)
		}
		if again.id != 7 || !again.sameAs(s) || !s.sameAs(again) || again.highestID != s.highestID {
			t.Errorf("%s is another schema than %s", written, raw)
		}
		if !bytes.Equal(again.withID(7), written) {
			t.Errorf("%s is written as %s", written, again.withID(7))
		}
		names := s.columnNames()
		for id, field := range s.byID {
			if found := names.find(longName(field)); found != field {
				t.Errorf("field %d is not found by its name %q, but %v", id, longName(field), found)
			}
		}
		if !bytes.Equal(raw, sent) {
			t.Error("the input was written to")
		}
	})
}

// longName is fullName without a bound.
func longName(f *field) string {
	if f.parent == nil {
		return f.name
	}
	return longName(f.parent) + "." + f.name
}

// A new table has dense ids, and its parts parse again as what they were.
func FuzzFreshTable(f *testing.F) {
	specs := []string{`{"fields":[]}`, partitioned("p", "bucket[4]", 1), `{"fields":[{"name":"p","transform":"x","source-ids":[1,2]}]}`}
	for i, s := range schemaSeeds() {
		f.Add([]byte(s), []byte(specs[i%len(specs)]), []byte(sorted("Identity", 1)))
	}
	f.Fuzz(func(t *testing.T, schemaSent, specSent, orderSent []byte) {
		s, err := parseSchema(schemaSent)
		if err != nil {
			return
		}
		p, err := parseSpec(specSent)
		if err != nil {
			p = nil
		}
		o, err := parseSortOrder(orderSent)
		if err != nil {
			o = nil
		}
		schemaRaw, specRaw, orderRaw, lastColumn, lastPartition, err := freshTable(s, p, o)
		if err != nil {
			return
		}
		fresh := reparse(t, schemaRaw, parseSchema)
		if len(fresh.byID) != len(s.byID) || fresh.highestID != lastColumn || lastColumn != len(s.byID) || fresh.id != 0 {
			t.Errorf("%d fields, highest id %d of %d, schema id %d", len(fresh.byID), fresh.highestID, lastColumn, fresh.id)
		}
		names := fresh.columnNames()
		for id, old := range s.byID {
			if found := names.find(longName(old)); found == nil || found.required != old.required {
				t.Errorf("field %d, %s, is %v now", id, longName(old), found)
			}
		}
		freshSpec := reparse(t, specRaw, parseSpec)
		if freshSpec.id != 0 || freshSpec.lastFieldID != lastPartition {
			t.Errorf("spec %s, last field id %d", specRaw, lastPartition)
		}
		if p != nil && p.check(s, formatVersionMax) == nil && freshSpec.check(fresh, 1) != nil {
			t.Errorf("spec %s fits, %s does not: %v", specSent, specRaw, freshSpec.check(fresh, 1))
		}
		freshOrder := reparse(t, orderRaw, parseSortOrder)
		if o != nil && o.check(s) == nil && freshOrder.check(fresh) != nil {
			t.Errorf("order %s fits, %s does not", orderSent, orderRaw)
		}
	})
}

func reparse[T any](t *testing.T, raw []byte, parse func([]byte) (T, error)) T {
	t.Helper()
	parsed, err := parse(raw)
	if err != nil {
		t.Fatalf("%s does not parse: %v", raw, err)
	}
	return parsed
}

func FuzzSpec(f *testing.F) {
	addSeeds(f, `{"fields":[]}`, partitioned("p", "Truncate[4]", 1), `{"spec-id":null,"fields":[{"name":"p","transform":"x","source-ids":[1,2]}]}`,
		`{"fields":[{"name":"a","transform":"identity","source-id":1},{"name":"b","transform":"void","source-id":99}]}`)
	s := mustSchema(f, columns)
	f.Fuzz(func(t *testing.T, raw []byte) {
		p, err := parseSpec(raw)
		if err != nil {
			return
		}
		again := reparse(t, p.withID(7), parseSpec)
		if again.id != 7 || !again.sameAs(p) || again.lastFieldID != p.lastFieldID || (p.check(s, 2) == nil) != (again.check(s, 2) == nil) {
			t.Errorf("%s is another spec than %s", p.withID(7), raw)
		}
		p.assignFieldIDs(1500)
		again = reparse(t, p.withID(7), parseSpec)
		if !again.sameAs(p) || again.lastFieldID != p.lastFieldID || again.fieldIDs == idsMissing && len(p.fields) > 0 {
			t.Errorf("%s is another spec than %s with ids", p.withID(7), raw)
		}
	})
}

func FuzzSortOrder(f *testing.F) {
	addSeeds(f, `{"fields":[]}`, sorted("Bucket[4]", 2), `{"order-id":2,"fields":[{"transform":"x","source-ids":[1,2],"direction":"DESC","null-order":"Nulls-Last"}]}`)
	s := mustSchema(f, columns)
	f.Fuzz(func(t *testing.T, raw []byte) {
		o, err := parseSortOrder(raw)
		if err != nil {
			return
		}
		id := 7
		if o.isUnsorted() {
			id = 0
		}
		again := reparse(t, o.withID(id), parseSortOrder)
		if again.id != id || !again.sameAs(o) || (o.check(s) == nil) != (again.check(s) == nil) {
			t.Errorf("%s is another order than %s", o.withID(id), raw)
		}
	})
}
