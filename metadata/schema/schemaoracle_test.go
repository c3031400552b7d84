package schema_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"moorage/metadata/schema"
)

// The tests in this file compare this package with iceberg-go on random schemas. Intended
// differences are listed here. A difference that is not listed fails the test, and so does an entry
// that never occurs.

// verdicts returns which of the two packages accept a schema.
type verdicts struct{ ours, theirs bool }

// schemaFaults returns changes that make a valid schema of format version 3 invalid or odd, with
// the expected verdicts.
func schemaFaults() map[string]struct {
	apply func(g *schemaMaker)
	want  verdicts
} {
	set := func(key, value string) func(*schemaMaker) {
		return func(g *schemaMaker) { g.columns[0][key] = value }
	}
	def := func(typ, value string) func(*schemaMaker) {
		return func(g *schemaMaker) { g.columns[0]["type"], g.columns[0]["initial-default"] = typ, value }
	}
	identify := func(required, typ string) func(*schemaMaker) {
		return func(g *schemaMaker) {
			g.columns[0]["required"], g.columns[0]["type"] = required, typ
			delete(g.columns[0], "initial-default")
			g.identifiers = []string{g.columns[0]["id"]}
		}
	}
	type fault = struct {
		apply func(g *schemaMaker)
		want  verdicts
	}
	both, neither := verdicts{true, true}, verdicts{}
	onlyOurs, onlyTheirs := verdicts{ours: true}, verdicts{theirs: true}
	return map[string]fault{
		"duplicate id":           {func(g *schemaMaker) { g.columns[1]["id"] = g.columns[0]["id"] }, neither},
		"duplicate name":         {func(g *schemaMaker) { g.columns[1]["name"] = g.columns[0]["name"] }, neither},
		"empty name":             {set("name", `""`), neither},
		"null name":              {set("name", `null`), neither},
		"no id":                  {func(g *schemaMaker) { delete(g.columns[0], "id") }, neither},
		"no type":                {func(g *schemaMaker) { delete(g.columns[0], "type") }, neither},
		"no required":            {func(g *schemaMaker) { delete(g.columns[0], "required") }, neither},
		"id beyond 32 bits":      {set("id", `2147483648`), onlyTheirs},
		"fractional id":          {set("id", `1.5`), neither},
		"unknown type":           {set("type", `"int96"`), neither},
		"wide decimal":           {set("type", `"decimal(39,2)"`), neither},
		"type in capitals":       {func(g *schemaMaker) { set("type", `"STRING"`)(g); delete(g.columns[0], "initial-default") }, onlyOurs}, // as in Java; stored in lower case
		"null default":           {set("write-default", `null`), both},
		"unknown member":         {set("x", `{"y":[1.50]}`), both},
		"row lineage id":         {set("id", `2147483540`), neither},
		"reserved id":            {set("id", `2147483646`), onlyTheirs}, // theirs permits some for its own files
		"identifier":             {identify(`true`, `"long"`), both},
		"unknown identifier":     {func(g *schemaMaker) { g.identifiers = []string{`999`} }, onlyTheirs}, // theirs checks none of them
		"optional identifier":    {identify(`false`, `"long"`), onlyTheirs},
		"float identifier":       {identify(`true`, `"double"`), onlyTheirs},
		"required unknown":       {func(g *schemaMaker) { identify(`true`, `"unknown"`)(g); g.identifiers = nil }, neither},
		"long default":           {def(`"long"`, `9223372036854775807`), both},
		"text for a long":        {def(`"long"`, `"abc"`), onlyTheirs}, // theirs does not check the type
		"long out of range":      {def(`"long"`, `9223372036854775808`), onlyTheirs},
		"integral double":        {def(`"double"`, `1`), onlyTheirs}, // Java cannot load it
		"decimal as number":      {def(`"decimal(9,2)"`, `1.25`), onlyTheirs},
		"decimal of other scale": {def(`"decimal(9,2)"`, `"1.5"`), onlyTheirs},
		"local timestamptz":      {def(`"timestamptz"`, `"2024-01-01T00:00:00"`), onlyTheirs},
		"odd hexadecimal":        {def(`"binary"`, `"abc"`), onlyTheirs},
		"variant default":        {def(`"variant"`, `"x"`), neither},
		"geometry default":       {def(`"geometry"`, `"x"`), neither},
		"list default":           {def(`{"type":"list","element-id":9001,"element":"int","element-required":true}`, `[]`), onlyTheirs}, // Java cannot load it
		"empty struct default":   {def(`{"type":"struct","fields":[]}`, `{}`), onlyTheirs},                                             // Java cannot load it
	}
}

// schemaMaker makes random schemas.
type schemaMaker struct {
	random      *rand.Rand
	lastID      int
	columns     []map[string]string // members of the columns, JSON
	identifiers []string
	nested      bool
}

func newSchemaMaker(seed uint64) *schemaMaker {
	g := &schemaMaker{random: rand.New(rand.NewPCG(seed, 1))}
	for i := range 2 + g.random.IntN(5) {
		g.columns = append(g.columns, g.field(i, 0))
	}
	return g
}

func (g *schemaMaker) id() string {
	g.lastID += 1 + g.random.IntN(3)
	return fmt.Sprint(g.lastID)
}

func (g *schemaMaker) field(i, depth int) map[string]string {
	f := map[string]string{
		"id": g.id(), "name": fmt.Sprintf("%q", fmt.Sprint(string(rune('a'+i)), g.random.IntN(10))),
		"required": fmt.Sprint(g.random.IntN(2) == 0),
	}
	f["type"] = g.typ(depth, f["required"] == "true")
	if g.random.IntN(4) == 0 {
		f["doc"] = fmt.Sprintf("%q", fmt.Sprint("doc ", g.random.IntN(3)))
	}
	if f["type"] == `"int"` && g.random.IntN(2) == 0 {
		f["initial-default"] = fmt.Sprint(g.random.IntN(100))
	}
	return f
}

func (g *schemaMaker) typ(depth int, required bool) string {
	if depth < 3 && g.random.IntN(4) == 0 {
		g.nested = true
		return g.nestedType(depth)
	}
	names := []string{
		"boolean", "int", "long", "float", "double", "date", "time", "timestamp", "timestamptz", "timestamp_ns",
		"timestamptz_ns", "string", "uuid", "binary", "fixed[7]", "decimal(9, 2)", "decimal(38,38)", "variant",
		"geometry", "geometry(EPSG:3857)", "geography", "geography(EPSG:4326, karney)", "unknown",
	}
	if required {
		names = names[:len(names)-1]
	}
	return fmt.Sprintf("%q", names[g.random.IntN(len(names))])
}

func (g *schemaMaker) nestedType(depth int) string {
	switch g.random.IntN(3) {
	case 0:
		var fields []string
		for i := range 1 + g.random.IntN(3) {
			fields = append(fields, objectJSON(g.field(i, depth+1)))
		}
		return `{"type":"struct","fields":[` + strings.Join(fields, ",") + `]}`
	case 1:
		required := g.random.IntN(2) == 0
		return fmt.Sprintf(`{"type":"list","element-id":%s,"element":%s,"element-required":%v}`,
			g.id(), g.typ(depth+1, required), required)
	}
	required := g.random.IntN(2) == 0
	return fmt.Sprintf(`{"type":"map","key-id":%s,"key":%s,"value-id":%s,"value":%s,"value-required":%v}`,
		g.id(), g.typ(depth+1, true), g.id(), g.typ(depth+1, required), required)
}

func objectJSON(members map[string]string) string {
	var texts []string
	for key, value := range members {
		texts = append(texts, fmt.Sprintf("%q:%s", key, value))
	}
	slices.Sort(texts)
	return "{" + strings.Join(texts, ",") + "}"
}

func (g *schemaMaker) json() string {
	var columns []string
	for _, c := range g.columns {
		columns = append(columns, objectJSON(c))
	}
	return fmt.Sprintf(`{"type":"struct","schema-id":0,"identifier-field-ids":[%s],"fields":[%s]}`,
		strings.Join(g.identifiers, ","), strings.Join(columns, ","))
}

// accept returns the verdicts on adding a schema to a new table.
func accept(t *testing.T, raw string, version int) (ours *schema.Schema, theirs *iceberg.Schema, got verdicts) {
	t.Helper()
	ours, err := schema.Parse([]byte(raw))
	got.ours = err == nil && ours.Check(version) == nil
	theirs = new(iceberg.Schema)
	if json.Unmarshal([]byte(raw), theirs) == nil {
		builder, err := table.NewMetadataBuilder(version)
		if err != nil {
			t.Fatal(err)
		}
		got.theirs = builder.AddSchema(theirs) == nil
	}
	return ours, theirs, got
}

// oracleSeeds is the number of random schemas; a failure names its seed.
const oracleSeeds = 300

func TestSchemaAgreesWithOracle(t *testing.T) {
	t.Parallel()
	for seed := range uint64(oracleSeeds) {
		g := newSchemaMaker(seed)
		raw := g.json()
		ours, theirs, got := accept(t, raw, 3)
		if got != (verdicts{true, true}) {
			t.Fatalf("seed %d: accepted %+v: %s", seed, got, raw)
		}
		if ours.HighestID != theirs.HighestFieldID() {
			t.Errorf("seed %d: highest id %d, theirs %d", seed, ours.HighestID, theirs.HighestFieldID())
		}
		for id, f := range ours.Fields() {
			name, _ := theirs.FindColumnName(id)
			field, _ := theirs.FindFieldByID(id)
			if name != f.Name || field.Required != f.Required || f.Type != nil && !field.Type.Equals(f.Type) {
				t.Errorf("seed %d: field %d is %+v, theirs %s", seed, id, f, field)
			}
		}
		for version := 1; version < 3; version++ {
			// A write-default does not need v3 in Java, but iceberg-go requires it. The maker makes
			// no write-defaults.
			if _, _, got := accept(t, raw, version); got.ours != got.theirs {
				t.Errorf("seed %d: v%d accepted %+v: %s", seed, version, got, raw)
			}
		}
	}
}

func TestSchemaFaultsAgainstOracle(t *testing.T) {
	t.Parallel()
	for name, fault := range schemaFaults() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(20) {
				g := newSchemaMaker(seed)
				fault.apply(g)
				if _, _, got := accept(t, g.json(), 3); got != fault.want {
					t.Fatalf("seed %d: accepted %+v, want %+v: %s", seed, got, fault.want, g.json())
				}
			}
		})
	}
}

// Either both packages consider two schemas equal, or neither does. The one exception is an empty
// doc.
func TestSameSchemaAgainstOracle(t *testing.T) {
	t.Parallel()
	changes := map[string]func(g *schemaMaker){
		"none":     func(*schemaMaker) {},
		"name":     func(g *schemaMaker) { g.columns[0]["name"] = `"z"` },
		"id":       func(g *schemaMaker) { g.columns[0]["id"] = `9000` },
		"doc":      func(g *schemaMaker) { g.columns[0]["doc"] = `"other"` },
		"type":     func(g *schemaMaker) { g.columns[0]["type"] = `"fixed[99]"` },
		"required": func(g *schemaMaker) { g.columns[1]["required"], g.columns[1]["type"] = `true`, `"fixed[98]"` },
		"default":  func(g *schemaMaker) { g.columns[1]["type"], g.columns[1]["initial-default"] = `"int"`, `77` },
		"order":    func(g *schemaMaker) { slices.Reverse(g.columns) },
		"fewer":    func(g *schemaMaker) { g.columns = g.columns[1:] },
	}
	for name, change := range changes {
		for seed := range uint64(40) {
			base, changed := newSchemaMaker(seed), newSchemaMaker(seed)
			change(changed)
			ours, theirs, _ := accept(t, base.json(), 3)
			oursChanged, theirsChanged, _ := accept(t, changed.json(), 3)
			if a, b := ours.SameAs(oursChanged), theirs.Equals(theirsChanged); a != b {
				t.Errorf("%s, seed %d: same %v, theirs %v\n%s\n%s", name, seed, a, b, base.json(), changed.json())
			}
		}
	}
	a, b := mustSchema(t, column(`"int"`)), mustSchema(t, strings.Replace(column(`"int"`), `"id":1`, `"id":1,"doc":""`, 1))
	if a.SameAs(b) {
		t.Error("no doc and an empty one are the same; Java tells them apart")
	}
}

// For a schema without nested types, new tables get the same ids from both. Otherwise, iceberg-go
// numbers a field's children before its siblings; Java and this package number them after the
// siblings.
func TestFreshIDsAgainstOracle(t *testing.T) {
	t.Parallel()
	flat := 0
	for seed := range uint64(oracleSeeds) {
		g := newSchemaMaker(seed)
		raw := g.json()
		schemaRaw, _, _, last, _, err := schema.Fresh(mustSchema(t, raw), nil, nil)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		_, theirs, _ := accept(t, raw, 3)
		id := 0
		fresh, err := iceberg.AssignFreshSchemaIDs(theirs, func() int { id++; return id })
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if fresh.HighestFieldID() != last {
			t.Errorf("seed %d: last id %d, theirs %d", seed, last, fresh.HighestFieldID())
		}
		ours := mustSchema(t, string(schemaRaw))
		names := ours.ColumnNames()
		for id, f := range ours.Fields() {
			theirField, ok := fresh.FindFieldByName(f.Name)
			found, _ := names.Find(f.Name)
			if !ok || found != id || !g.nested && theirField.ID != id {
				t.Errorf("seed %d: %s has id %d, theirs %v", seed, f.Name, id, theirField)
			}
		}
		if !g.nested {
			flat++
		}
	}
	if flat == 0 || flat == oracleSeeds {
		t.Errorf("%d of %d schemas are flat", flat, oracleSeeds)
	}
}
