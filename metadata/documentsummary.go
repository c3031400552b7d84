package metadata

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/cespare/xxhash/v2"

	"moorage"
	"moorage/metadata/schema"
)

// Summary describes one version of a table or view, for lists and for planning maintenance. Making
// it reads only the index of the document and two snapshots, however large the document is. A
// number that the document does not state is Unsaid, and a missing text is empty.
type Summary struct {
	Format    int64 // format version
	Snapshots int64
	Refs      int64
	Columns   int64 // top-level columns of the current schema
	Versions  int64 // of a view
	At        int64 // time when the version was made, in milliseconds since 1970
	FirstMS   int64 // time of the first snapshot in the document
	Seq       int64 // last sequence number
	// Rows, Files, Deletes and Bytes are totals in the summary of main's head. Its id is Snapshot.
	Rows, Files, Deletes, Bytes, Snapshot int64
	Operation                             string // of main's head
	// Engine is the name and version of the engine that made main's head, or the current version of
	// a view. It has at most engineBytesMax bytes.
	Engine string
	// Rules is a hash of the maintenance settings in the table itself: properties, and the
	// retention of refs.
	Rules string
	// Comment is the property of that name, truncated to commentBytesMax bytes.
	Comment string
}

// Unsaid stands for a number that a document does not state.
const Unsaid = -1

// Bounds of the texts in a Summary.
const (
	engineBytesMax  = 40
	commentBytesMax = 120
)

// careProperties lists properties with maintenance settings. Properties with a prefix in
// carePrefixes are such settings too.
var (
	careProperties = []string{"gc.enabled", propEncryptionKeyID, "write.target-file-size-bytes"}
	carePrefixes   = []string{"history.expire.", "commit.manifest.", ownPrefix + "maintenance."}
)

// Summary returns the summary of d.
func (d *Document) Summary() Summary {
	all := d.arrays[snapshots]
	s := Summary{
		Format: int64(d.formatVersion), Snapshots: int64(all.len()), Refs: int64(len(d.refs)),
		Columns: int64(d.columns), Versions: Unsaid, At: d.lastUpdatedMS, FirstMS: Unsaid,
		Seq: d.lastSequenceNumber, Rows: Unsaid, Files: Unsaid, Deletes: Unsaid, Bytes: Unsaid,
		Snapshot: Unsaid, Rules: d.careRules(), Comment: moorage.Cut(d.props[propComment], commentBytesMax),
	}
	if all.len() > 0 {
		first := d.snapshot(all.at(0))
		s.FirstMS = first.timestampMS
	}
	at, ok := d.snapshotAt.find(all, d.currentSnapshotID)
	if !ok {
		return s
	}
	head := d.snapshot(all.at(at))
	s.Snapshot = head.id
	if head.summary == nil {
		return s
	}
	var engine, version string
	c := reread(head.summary)
	_ = c.Object(func(key []byte) (err error) { // the summary was already parsed
		switch string(key) {
		case "operation":
			s.Operation, err = c.string("operation")
		case "total-records":
			s.Rows, err = c.numeral()
		case "total-data-files":
			s.Files, err = c.numeral()
		case "total-delete-files":
			s.Deletes, err = c.numeral()
		case "total-files-size":
			s.Bytes, err = c.numeral()
		case keyEngineName:
			engine, err = c.string(keyEngineName)
		case keyEngineVersion:
			version, err = c.string(keyEngineVersion)
		default:
			err = c.Skip()
		}
		return err
	})
	s.Engine = engineOf(engine, version)
	return s
}

// Summary returns the summary of d. Its operation is empty, and it has no totals.
func (d *ViewDocument) Summary() Summary {
	s := Summary{
		Format: viewFormatVersion, Snapshots: Unsaid, Refs: Unsaid, Columns: Unsaid,
		Versions: int64(d.arrays[viewVersions].len()), At: Unsaid, FirstMS: Unsaid, Seq: Unsaid, Rows: Unsaid,
		Files: Unsaid, Deletes: Unsaid, Bytes: Unsaid, Snapshot: Unsaid,
		Comment: moorage.Cut(d.properties[propComment], commentBytesMax),
	}
	current, err := d.version(d.currentVersionID)
	if err != nil || current == nil {
		return s // not reached: the document was checked when it was parsed
	}
	s.At, s.Engine = current.timestampMS, engineOf(current.summary[keyEngineName], current.summary[keyEngineVersion])
	for _, e := range d.arrays[viewSchemas].all(0) {
		if e.id != int64(current.schemaID) {
			continue
		}
		if parsed, err := schema.Parse(d.value(viewArrayKeys[viewSchemas])[e.start:e.end]); err == nil {
			s.Columns = int64(parsed.Width())
		}
	}
	return s
}

// Names that engines use in the summaries of snapshots and of view versions, and the property with
// the comment of a table or view.
const (
	keyEngineName    = "engine-name"
	keyEngineVersion = "engine-version"
	propComment      = "comment"
)

// engineOf returns the name and version of an engine as one text.
func engineOf(name, version string) string {
	if name != "" && version != "" {
		name += " "
	}
	return moorage.Cut(name+version, engineBytesMax)
}

// numeral consumes a number in a string. It returns Unsaid if the string is not a number.
func (c *cursor) numeral() (int64, error) {
	text, err := c.string("")
	if err != nil {
		return Unsaid, err
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return Unsaid, nil
	}
	return n, nil
}

// careRules returns the hash of the maintenance settings in d. It is empty if d has no such
// settings.
func (d *Document) careRules() string {
	var said []string
	for name, value := range d.props {
		if isCareProperty(name) {
			said = append(said, name+"\x00"+value)
		}
	}
	for i := range d.refs {
		r := &d.refs[i]
		if r.minToKeep.given || r.maxAgeMS.given || r.maxRefAge.given {
			said = append(said, "ref "+r.name+"\x00"+string(r.appendJSON(nil)))
		}
	}
	if len(said) == 0 {
		return ""
	}
	slices.SortFunc(said, cmp.Compare[string])
	hash := xxhash.New()
	for _, text := range said {
		_, _ = hash.WriteString(strconv.Itoa(len(text)) + ":" + text)
	}
	const hexadecimal = 16
	return strconv.FormatUint(hash.Sum64(), hexadecimal)
}

func isCareProperty(name string) bool {
	return slices.Contains(careProperties, name) ||
		slices.ContainsFunc(carePrefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}
