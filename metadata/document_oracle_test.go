package metadata_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/apache/iceberg-go/table"

	"moorage/metadata"
)

var oracleSeed = flag.Uint64("seed", 1, "seed of the random requests that are compared with iceberg-go")

// TestApplyAgreesWithOracle makes random requests to tables of every version. It applies each
// request to the same document, with this package and with iceberg-go's table package. Both must
// accept it with the same result, or both must refuse it, apart from the differences listed below.
func TestApplyAgreesWithOracle(t *testing.T) {
	t.Parallel()
	const tables, requests = 12, 60
	used := make(map[string]int)
	for i := range tables {
		g := &generator{t: t, rand: rand.New(rand.NewPCG(*oracleSeed, uint64(i))), d: createTest(t, 1+i%3)}
		for range requests {
			request := g.request()
			next, err := g.d.Apply(decodeTest(t, request), testEnv(1))
			theirs, oracleErr := oracleApply(g.d.Raw(), request)
			if name := expectedDifference(request, err, oracleErr); name != "" {
				used[name]++
			} else if (err == nil) != (oracleErr == nil) {
				t.Fatalf("seed %d, table %d: %s\nto %s:\nours:   %v\noracle: %v", *oracleSeed, i, request, g.d.Raw(), err, oracleErr)
			}
			if err != nil {
				continue
			}
			checkIndex(t, next)
			if oracleErr == nil && next != g.d {
				difference, name := compareDocuments(t, request, next.Raw(), theirs)
				if name != "" {
					used[name]++
				} else if difference != "" {
					t.Fatalf("seed %d, table %d: %s\nto %s:\n%s", *oracleSeed, i, request, g.d.Raw(), difference)
				}
			}
			g.d = next
		}
	}
	t.Logf("expected differences: %v", used)
}

// oracleApply applies a request through iceberg-go.
func oracleApply(raw []byte, request string) ([]byte, error) {
	meta, err := table.ParseMetadataBytes(raw)
	if err != nil {
		return nil, fmt.Errorf("parse: %w", err)
	}
	var updates table.Updates
	if err := json.Unmarshal([]byte(request), &updates); err != nil {
		return nil, err
	}
	builder, err := table.MetadataBuilderFromBase(meta, testEnv(1).BaseLocation)
	if err != nil {
		return nil, err
	}
	for _, u := range updates {
		if err := u.Apply(builder); err != nil {
			return nil, err
		}
	}
	next, err := builder.Build()
	if err != nil {
		return nil, err
	}
	return json.Marshal(next)
}

// generator makes requests that can often be applied to its document.
type generator struct {
	rand *rand.Rand
	t    *testing.T
	d    *metadata.Document
	read *metadata.Document // the document of content
	tableContent
	next int64 // the last used snapshot id
}

// content returns the parsed content of the document.
func (g *generator) content() *tableContent {
	if g.read != g.d {
		g.read, g.tableContent = g.d, tableOf(g.t, g.d)
	}
	return &g.tableContent
}

func (g *generator) chance(percent int) bool { return g.rand.IntN(100) < percent }

func (g *generator) request() string {
	updates := make([]string, 0, 4)
	for range 1 + g.rand.IntN(3) {
		updates = append(updates, g.update())
	}
	return "[" + strings.Join(updates, ",") + "]"
}

func (g *generator) update() string {
	makers := []func() string{
		g.append, g.append, g.append, g.setRef, g.setRef, g.removeRef, g.removeSnapshots, g.setProperties, g.removeProperties,
		g.addSchema, g.addSchema, g.setSchema, g.addSpec, g.addSpec, g.addOrder, g.removeParts, g.statistics, g.statistics,
		g.encryptionKey, g.upgrade, g.setLocation,
	}
	return makers[g.rand.IntN(len(makers))]()
}

const unknownSnapshot = 777

// snapshotID returns the id of some snapshot, usually an existing one.
func (g *generator) snapshotID() int64 {
	all := g.content().Snapshots
	if len(all) == 0 || g.chance(5) {
		return unknownSnapshot
	}
	return all[g.rand.IntN(len(all))].ID
}

func (g *generator) append() string {
	g.next++
	id, sequence, parent := g.next, g.content().LastSequenceNumber+1, ""
	head, ok := g.d.CurrentSnapshotID()
	if ok && g.chance(90) {
		parent = fmt.Sprintf(`"parent-snapshot-id":%d,`, head)
	}
	if g.d.FormatVersion() == 1 {
		sequence = 0
	} else if g.chance(5) {
		sequence = g.content().LastSequenceNumber
	}
	rows := ""
	if g.d.FormatVersion() >= 3 {
		rows = fmt.Sprintf(`"first-row-id":%d,"added-rows":%d,`, g.content().NextRowID, g.rand.IntN(100))
	}
	u := fmt.Sprintf(`{"action":"add-snapshot","snapshot":{"snapshot-id":%d,%s"sequence-number":%d,%s"timestamp-ms":%d,
		"manifest-list":"m%d","summary":{"operation":"append","n":"%d"},"schema-id":%d}}`,
		id, parent, sequence, rows, testNowMS, id, id, g.content().CurrentSchemaID)
	if g.chance(90) {
		u += fmt.Sprintf(`,{"action":"set-snapshot-ref","ref-name":"main","type":"branch","snapshot-id":%d}`, id)
	}
	return u
}

func (g *generator) refName() string { return []string{"main", "a", "b"}[g.rand.IntN(3)] }

func (g *generator) setRef() string {
	kind, retention := "branch", ""
	if g.chance(40) {
		kind = "tag"
	}
	if g.chance(30) {
		retention = fmt.Sprintf(`,"max-ref-age-ms":%d`, 1+g.rand.IntN(3))
	}
	return fmt.Sprintf(`{"action":"set-snapshot-ref","ref-name":%q,"type":%q,"snapshot-id":%d%s}`,
		g.refName(), kind, g.snapshotID(), retention)
}

func (g *generator) removeRef() string {
	return fmt.Sprintf(`{"action":"remove-snapshot-ref","ref-name":%q}`, g.refName())
}

func (g *generator) removeSnapshots() string {
	return fmt.Sprintf(`{"action":"remove-snapshots","snapshot-ids":[%d,%d]}`, g.snapshotID(), g.snapshotID())
}

func (g *generator) setProperties() string {
	return fmt.Sprintf(`{"action":"set-properties","updates":{"p%d":"<%d>","write.metadata.previous-versions-max":"%d"}}`,
		g.rand.IntN(3), g.rand.IntN(9), 2+g.rand.IntN(4))
}

func (g *generator) removeProperties() string {
	return fmt.Sprintf(`{"action":"remove-properties","removals":["p%d"]}`, g.rand.IntN(3))
}

func (g *generator) setLocation() string {
	return fmt.Sprintf(`{"action":"set-location","location":"s3://b/t%d"}`, g.rand.IntN(3))
}

// addSchema adds a column, drops one, or sends an earlier schema.
func (g *generator) addSchema() string {
	all := g.content().Schemas
	var current struct {
		Fields []map[string]any `json:"fields"`
	}
	if err := json.Unmarshal(all[g.rand.IntN(len(all))], &current); err != nil {
		panic(err)
	}
	fields := current.Fields
	switch g.rand.IntN(3) {
	case 0:
		id := g.content().LastColumnID + 1
		fields = append(fields, map[string]any{"id": id, "name": fmt.Sprintf("c%d", id), "required": false, "type": "long"})
	case 1:
		if len(fields) > 1 {
			i := g.rand.IntN(len(fields))
			fields = slices.Delete(fields, i, i+1)
		}
	}
	raw, err := json.Marshal(map[string]any{"type": "struct", "schema-id": 0, "fields": fields})
	if err != nil {
		panic(err)
	}
	u := fmt.Sprintf(`{"action":"add-schema","schema":%s}`, raw)
	if g.chance(80) {
		u += `,{"action":"set-current-schema","schema-id":-1}`
	}
	return u
}

func (g *generator) setSchema() string {
	return fmt.Sprintf(`{"action":"set-current-schema","schema-id":%d}`, g.rand.IntN(len(g.content().Schemas)+1))
}

func (g *generator) column() int { return 1 + g.rand.IntN(g.content().LastColumnID) }

func (g *generator) addSpec() string {
	transform := []string{"identity", "bucket[4]", "day", "void", "truncate[3]"}[g.rand.IntN(5)]
	column := g.column()
	id := 1000
	if g.d.FormatVersion() > 1 {
		id = g.content().LastPartitionID + 1
	}
	u := fmt.Sprintf(`{"action":"add-spec","spec":{"spec-id":0,"fields":[{"name":"p_%s_%d","transform":%q,"source-id":%d,"field-id":%d}]}}`,
		strings.Trim(transform, "[]34"), column, transform, column, id)
	if g.chance(80) {
		u += `,{"action":"set-default-spec","spec-id":-1}`
	}
	return u
}

func (g *generator) addOrder() string {
	u := `{"action":"add-sort-order","sort-order":{"order-id":0,"fields":[]}}`
	if g.chance(80) {
		u = fmt.Sprintf(`{"action":"add-sort-order","sort-order":{"order-id":1,"fields":[{"transform":"identity","source-id":%d,
			"direction":"asc","null-order":"nulls-first"}]}}`, g.column())
	}
	if g.chance(80) {
		u += `,{"action":"set-default-sort-order","sort-order-id":-1}`
	}
	return u
}

func (g *generator) removeParts() string {
	if g.chance(50) {
		return fmt.Sprintf(`{"action":"remove-schemas","schema-ids":[%d]}`, g.rand.IntN(4))
	}
	return fmt.Sprintf(`{"action":"remove-partition-specs","spec-ids":[%d]}`, g.rand.IntN(4))
}

func (g *generator) statistics() string {
	id := g.snapshotID()
	if id == unknownSnapshot {
		id++ // iceberg-go also removes statistics of snapshots that never existed
	}
	switch g.rand.IntN(4) {
	case 0:
		return fmt.Sprintf(`{"action":"remove-statistics","snapshot-id":%d}`, id)
	case 1:
		return fmt.Sprintf(`{"action":"remove-partition-statistics","snapshot-id":%d}`, id)
	case 2:
		return fmt.Sprintf(`{"action":"set-partition-statistics","partition-statistics":{"snapshot-id":%d,"statistics-path":"q","file-size-in-bytes":%d}}`,
			id, g.rand.IntN(9))
	}
	return fmt.Sprintf(`{"action":"set-statistics","snapshot-id":%d,"statistics":{"snapshot-id":%[1]d,"statistics-path":"p","file-size-in-bytes":%d,
		"file-footer-size-in-bytes":1,"blob-metadata":[{"type":"t","snapshot-id":%[1]d,"sequence-number":1,"fields":[1],"properties":{"a":"b"}}]}}`,
		id, g.rand.IntN(9))
}

func (g *generator) encryptionKey() string {
	id := g.rand.IntN(3)
	if g.chance(40) {
		return fmt.Sprintf(`{"action":"remove-encryption-key","key-id":"k%d"}`, id)
	}
	return fmt.Sprintf(`{"action":"add-encryption-key","encryption-key":{"key-id":"k%d","encrypted-key-metadata":"AAAA"}}`, id)
}

func (g *generator) upgrade() string {
	version := g.d.FormatVersion()
	if g.chance(5) {
		version += g.rand.IntN(3) - 1
	}
	return fmt.Sprintf(`{"action":"upgrade-format-version","format-version":%d}`, version)
}

// difference is a case in which this package follows the Java reference, or its own stated choice,
// and iceberg-go does not.
type difference struct {
	name string
	// request, ours and oracle must all match. An empty pattern for an error means that there must
	// be none.
	request, ours, oracle *regexp.Regexp
}

func differ(name, request, ours, oracle string) difference {
	return difference{name, regexp.MustCompile(request), regexp.MustCompile(`^` + ours + `$`), regexp.MustCompile(`^` + oracle + `$`)}
}

// The names come from a comparison of both builders. A: iceberg-go accepts and Java refuses. R:
// iceberg-go refuses and Java accepts. D: other results.
var expectedDifferences = []difference{
	differ("lineage guard", `set-snapshot-ref`, `Cannot set branch \w+: the new snapshot does not descend.*`, ``),
	differ("A1: schema without the columns of the default spec", `set-current-schema|set-default-spec`, `Cannot find source column for partition field.*`, ``),
	differ("A2: transform that the column does not have", `add-spec`, `(Invalid source type|Cannot find source column for partition).*`, ``),
	differ("A12: one field id for two partition fields", `add-spec`, `Conflicting partition fields.*`, ``),
	differ("A10: main is a branch", `"main","type":"tag"`, `Cannot set main to a tag.*`, ``),
	differ("R2: remove a ref that is not there", `remove-snapshot-ref`, ``, `.*ref.*`),
	differ("R3: remove the current snapshot", `remove-snapshots`, ``, `.*current snapshot.*`),
	differ("R6: snapshot older than a rollback, which has the oracle's own clock", `add-snapshot`, ``, `invalid snapshot timestamp.*`),
	differ("void transform of a column that is gone", `"void"`, ``, `invalid partition spec: cannot find source column.*`),
}

// expectedDifference returns the name of the listed difference that applies to a request, or "" if
// none does.
func expectedDifference(request string, err, oracleErr error) string {
	if (err == nil) == (oracleErr == nil) {
		return ""
	}
	text := func(err error) string {
		if err == nil {
			return ""
		}
		return strings.ReplaceAll(err.Error(), "\n", " ")
	}
	for _, d := range expectedDifferences {
		if d.request.MatchString(request) && d.ours.MatchString(text(err)) && d.oracle.MatchString(text(oracleErr)) {
			return d.name
		}
	}
	return ""
}

// expectedResults lists expected differences of results. At most these members may differ, and only
// if the condition holds.
var expectedResults = []struct {
	name    string
	request *regexp.Regexp
	members []string
	holds   func(ours, theirs map[string]any) bool
}{
	{"D3: equal spec under another id is added again", regexp.MustCompile(`add-spec`),
		[]string{"partition-specs", "last-partition-id", "default-spec-id", "partition-spec"},
		func(ours, theirs map[string]any) bool {
			return len(ours["partition-specs"].([]any)) < len(theirs["partition-specs"].([]any))
		}},
	{"D7: main is removed after it was set", regexp.MustCompile(`remove-snapshot`), []string{"snapshot-log"},
		func(ours, _ map[string]any) bool { return ours["current-snapshot-id"] == nil }},
	{"removal of parts that are not there is a change", regexp.MustCompile(`remove-(schemas|partition-specs)`), []string{"metadata-log"},
		func(map[string]any, map[string]any) bool { return true }},
}

// compareDocuments returns where two documents differ in meaning, or returns "" if they do not. It
// also returns the name of the listed difference that explains that.
func compareDocuments(t *testing.T, request string, oursRaw, theirsRaw []byte) (difference, name string) {
	t.Helper()
	ours, theirs := normalDocument(t, oursRaw), normalDocument(t, theirsRaw)
	var members []string
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(ours)) {
		if !reflect.DeepEqual(ours[key], theirs[key]) {
			members = append(members, key)
			fmt.Fprintf(&b, "%s:\nours   %v\noracle %v\n", key, ours[key], theirs[key])
		}
	}
	for _, key := range slices.Sorted(maps.Keys(theirs)) {
		if _, ok := ours[key]; !ok {
			members = append(members, key)
			fmt.Fprintf(&b, "%s:\nours   none\noracle %v\n", key, theirs[key])
		}
	}
	for _, expected := range expectedResults {
		explained := !slices.ContainsFunc(members, func(key string) bool { return !slices.Contains(expected.members, key) })
		if len(members) > 0 && explained && expected.request.MatchString(request) && expected.holds(ours, theirs) {
			return b.String(), expected.name
		}
	}
	return b.String(), ""
}

// normalDocument decodes a document without the parts that both are known to write differently.
// These are members without information (F: empty lists and maps, no current snapshot, sequence
// number 0). The time of the commit differs too (D6: the clock here, the snapshot's there), and
// with it the time of a rollback in the log.
func normalDocument(t *testing.T, raw []byte) map[string]any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.UseNumber()
	var doc map[string]any
	if err := d.Decode(&doc); err != nil {
		t.Fatal(err)
	}
	delete(doc, "last-updated-ms")
	if doc["current-snapshot-id"] == json.Number("-1") {
		delete(doc, "current-snapshot-id")
	}
	if log, ok := doc["snapshot-log"].([]any); ok {
		for i, entry := range log {
			log[i] = entry.(map[string]any)["snapshot-id"]
		}
	}
	for _, key := range []string{"statistics", "partition-statistics"} { // their order says nothing
		if files, ok := doc[key].([]any); ok {
			slices.SortFunc(files, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		}
	}
	return withoutEmpty(doc).(map[string]any)
}

// emptyMeans lists members that have no meaning if they are empty.
var emptyMeans = []string{
	"properties", "refs", "snapshots", "snapshot-log", "metadata-log", "statistics", "partition-statistics",
	"encryption-keys", "identifier-field-ids", "current-snapshot-id", "sequence-number",
}

func withoutEmpty(value any) any {
	switch value := value.(type) {
	case []any:
		for i := range value {
			value[i] = withoutEmpty(value[i])
		}
	case map[string]any:
		for key, member := range value {
			member = withoutEmpty(member)
			list, isList := member.([]any)
			object, isObject := member.(map[string]any)
			empty := member == nil || isList && len(list) == 0 || isObject && len(object) == 0 || member == json.Number("0")
			if empty && slices.Contains(emptyMeans, key) {
				delete(value, key)
			}
		}
	}
	return value
}
