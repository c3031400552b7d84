package schema_test

import (
	"bytes"
	"testing"

	"moorage/internal/jsontext"
	"moorage/metadata/schema"
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

// A parsed schema, written with another id, parses as an equal schema.
func FuzzSchema(f *testing.F) {
	addSeeds(f, schemaSeeds()...)
	f.Fuzz(func(t *testing.T, raw []byte) {
		sent := bytes.Clone(raw)
		s, err := schema.Parse(raw)
		if err != nil {
			return
		}
		for version := range 4 {
			if err := s.Check(version); err != nil && len(err.Error()) > 3*schema.ProblemsMax*jsontext.ClipBytes {
				t.Errorf("a message of %d bytes", len(err.Error()))
			}
		}
		written := s.WithID(7)
		again, err := schema.Parse(written)
		if err != nil {
			t.Fatalf("%s does not parse: %v", written, err)
		}
		if again.ID != 7 || !again.SameAs(s) || !s.SameAs(again) || again.HighestID != s.HighestID {
			t.Errorf("%s is another schema than %s", written, raw)
		}
		if !bytes.Equal(again.WithID(7), written) {
			t.Errorf("%s is written as %s", written, again.WithID(7))
		}
		names := s.ColumnNames()
		for id, field := range s.Fields() {
			if found, _ := names.Find(field.Name); found != id {
				t.Errorf("field %d is not found by its name %q, but %v", id, field.Name, found)
			}
		}
		if !bytes.Equal(raw, sent) {
			t.Error("the input was written to")
		}
	})
}

// A new table has consecutive ids, and its parts parse again as equal parts.
func FuzzFreshTable(f *testing.F) {
	specs := []string{`{"fields":[]}`, partitioned("p", "bucket[4]", 1), `{"fields":[{"name":"p","transform":"x","source-ids":[1,2]}]}`}
	for i, s := range schemaSeeds() {
		f.Add([]byte(s), []byte(specs[i%len(specs)]), []byte(sorted("Identity", 1)))
	}
	f.Fuzz(func(t *testing.T, schemaSent, specSent, orderSent []byte) {
		s, err := schema.Parse(schemaSent)
		if err != nil {
			return
		}
		p, err := schema.ParseSpec(specSent)
		if err != nil {
			p = nil
		}
		o, err := schema.ParseSortOrder(orderSent)
		if err != nil {
			o = nil
		}
		schemaRaw, specRaw, orderRaw, lastColumn, lastPartition, err := schema.Fresh(s, p, o)
		if err != nil {
			return
		}
		fresh := reparse(t, schemaRaw, schema.Parse)
		was, is := s.Fields(), fresh.Fields()
		if len(is) != len(was) || fresh.HighestID != lastColumn || lastColumn != len(was) || fresh.ID != 0 {
			t.Errorf("%d fields, highest id %d of %d, schema id %d", len(is), fresh.HighestID, lastColumn, fresh.ID)
		}
		names := fresh.ColumnNames()
		for id, old := range was {
			if found, ok := names.Find(old.Name); !ok || is[found].Required != old.Required {
				t.Errorf("field %d, %s, is %d now, %+v", id, old.Name, found, is[found])
			}
		}
		freshSpec := reparse(t, specRaw, schema.ParseSpec)
		if freshSpec.ID != 0 || freshSpec.LastFieldID != lastPartition {
			t.Errorf("spec %s, last field id %d", specRaw, lastPartition)
		}
		if p != nil && p.Check(s, 3) == nil && freshSpec.Check(fresh, 1) != nil {
			t.Errorf("spec %s fits, %s does not: %v", specSent, specRaw, freshSpec.Check(fresh, 1))
		}
		freshOrder := reparse(t, orderRaw, schema.ParseSortOrder)
		if o != nil && o.Check(s) == nil && freshOrder.Check(fresh) != nil {
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
		p, err := schema.ParseSpec(raw)
		if err != nil {
			return
		}
		again := reparse(t, p.WithID(7), schema.ParseSpec)
		if again.ID != 7 || !again.SameAs(p) || again.LastFieldID != p.LastFieldID || (p.Check(s, 2) == nil) != (again.Check(s, 2) == nil) {
			t.Errorf("%s is another spec than %s", p.WithID(7), raw)
		}
		p.AssignFieldIDs(1500)
		again = reparse(t, p.WithID(7), schema.ParseSpec)
		if !again.SameAs(p) || again.LastFieldID != p.LastFieldID || again.LacksIDs() {
			t.Errorf("%s is another spec than %s with ids", p.WithID(7), raw)
		}
	})
}

func FuzzSortOrder(f *testing.F) {
	addSeeds(f, `{"fields":[]}`, sorted("Bucket[4]", 2), `{"order-id":2,"fields":[{"transform":"x","source-ids":[1,2],"direction":"DESC","null-order":"Nulls-Last"}]}`)
	s := mustSchema(f, columns)
	f.Fuzz(func(t *testing.T, raw []byte) {
		o, err := schema.ParseSortOrder(raw)
		if err != nil {
			return
		}
		id := 7
		if o.IsUnsorted() {
			id = 0
		}
		again := reparse(t, o.WithID(id), schema.ParseSortOrder)
		if again.ID != id || !again.SameAs(o) || (o.Check(s) == nil) != (again.Check(s) == nil) {
			t.Errorf("%s is another order than %s", o.WithID(id), raw)
		}
	})
}
