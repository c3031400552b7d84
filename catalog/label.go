package catalog

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"

	"github.com/maypok86/otter/v2"

	"moorage"
	"moorage/access"
	"moorage/catalog/commit"
	"moorage/catalog/directory"
	"moorage/catalog/gate"
	"moorage/ledger"
	"moorage/registry"
)

// Bounds of the labels of one table or view.
const (
	LabelsMax          = 256  // per object, and per field
	LabelFieldsMax     = 1000 // fields with labels
	LabelNameBytesMax  = 128
	LabelValueBytesMax = 1024
	LabelsBytesMax     = 64 << 10 // the size of their JSON
)

// Labels has the verbs for the labels of tables and views, as one caller: see Catalog.Labels. It is
// safe for concurrent use.
type Labels struct{ catalog *Catalog }

// Labels returns the verbs for labels, as the caller of c and with the key of its request.
func (c *Catalog) Labels() Labels { return Labels{c} }

// Load returns the labels of a table or view, and their version. Both are zero if there are no
// labels. kind is access.Table or access.View.
//
// Errors: KindNoSuchTable, KindNoSuchView; KindForbidden; KindInternal if the labels cannot be
// read.
func (l Labels) Load(ctx context.Context, kind access.Kind, ident moorage.Identifier) (
	labels registry.Labels, version registry.ID, err error) {
	labels, version, err = l.load(ctx, kind, ident)
	return labels, version, moorage.Annotate("catalog.Load", ident.String(), err)
}

func (l Labels) load(ctx context.Context, kind access.Kind, ident moorage.Identifier) (
	labels registry.Labels, version registry.ID, err error) {
	by := l.catalog.asker(gate.LoadLabels)
	if err := ident.Validate(); err != nil {
		return labels, version, err
	}
	found, err := l.catalog.directory.FindFor(ctx, by, by.Verb.Needs(gate.OfObject, gate.Always), ofKind(kind), ident)
	if err != nil || found.Pointer.Labels.IsZero() {
		return labels, version, err
	}
	records, err := l.catalog.ledger.Get(ctx, registry.LabelKey(found.Pointer.ID))
	if err != nil || !records[0].Exists() {
		return labels, version, err
	}
	if labels, err = ledger.Decode[registry.Labels](records[0]); err == nil {
		_, version, err = labels.Text()
	}
	return labels, version, err
}

// ofKind returns the kind of a table or view.
func ofKind(kind access.Kind) *directory.Kind {
	if kind == access.View {
		return directory.View()
	}
	return directory.Table()
}

// Put replaces the labels of a table or view, and returns their new version. Without labels it
// removes them. If match is not nil, it must accept the present version, which is zero if there are
// no labels. A field with labels must be in the present schema, unless it already had labels,
// because later versions of the schema may lack it. When Put returns without an error, the labels
// are durable.
//
// Errors: KindNoSuchTable, KindNoSuchView; KindForbidden; KindBadRequest and KindTooLarge for
// labels beyond the bounds; KindPreconditionFailed if match refuses; the errors of Catalog.For.
func (l Labels) Put(ctx context.Context, kind access.Kind, ident moorage.Identifier, labels registry.Labels,
	match func(present registry.ID) bool) (version registry.ID, err error) {
	labels, version, refused := checkLabels(labels)
	by := l.catalog.asker(gate.PutLabels)
	_, err = l.catalog.submit(ctx, commit.Intent{
		Verb: gate.PutLabels, On: []moorage.Identifier{ident}, Silent: true,
		Look: func(context.Context) (commit.Scope, error) { return commit.Scope{}, cmp.Or(ident.Validate(), refused) },
		Plan: commit.Plans(func(ctx context.Context, _ *commit.Attempt) (labelling, error) {
			return l.catalog.readLabelling(ctx, by, ofKind(kind), ident, labels, version)
		}, func(attempt *commit.Attempt, state labelling) (*commit.Plan, error) {
			if match != nil && !match(state.found.Pointer.Labels) {
				return nil, moorage.Errorf(moorage.KindPreconditionFailed, "The labels of %s have changed", ident)
			}
			return state.plan(attempt)
		}),
	})
	return version, moorage.Annotate("catalog.Put", ident.String(), err)
}

// checkLabels returns labels in the form stored in records, with their version. The error explains
// why they cannot be stored.
func checkLabels(labels registry.Labels) (registry.Labels, registry.ID, error) {
	labels.Fields = slices.DeleteFunc(slices.Clone(labels.Fields), func(field registry.FieldLabels) bool {
		return len(field.Labels) == 0
	})
	slices.SortStableFunc(labels.Fields, func(a, b registry.FieldLabels) int { return cmp.Compare(a.Field, b.Field) })
	refused := checkLabelMap(labels.Object, "the object")
	if n := len(labels.Fields); n > LabelFieldsMax {
		return labels, registry.ID{}, moorage.Errorf(moorage.KindTooLarge, "%d fields have labels, at most %d may", n,
			LabelFieldsMax)
	}
	for i, field := range labels.Fields {
		if i > 0 && field.Field == labels.Fields[i-1].Field {
			refused = cmp.Or(refused, moorage.Errorf(moorage.KindBadRequest, "Field %d is named twice", field.Field))
		}
		refused = cmp.Or(refused, checkLabelMap(field.Labels, fmt.Sprintf("field %d", field.Field)))
	}
	if refused != nil {
		return labels, registry.ID{}, refused
	}
	text, version, err := labels.Text()
	if err == nil && len(text) > LabelsBytesMax {
		err = moorage.Errorf(moorage.KindTooLarge, "The labels have %d bytes as JSON, at most %d are possible",
			len(text), LabelsBytesMax)
	}
	return labels, version, err
}

// checkLabelMap returns an error if the labels of an object or a field cannot be stored. The
// parameter of describes the object or field.
func checkLabelMap(labels map[string]string, of string) error {
	if n := len(labels); n > LabelsMax {
		return moorage.Errorf(moorage.KindTooLarge, "%d labels of %s, at most %d are possible", n, of, LabelsMax)
	}
	for name, value := range labels {
		switch {
		case name == "":
			return moorage.Errorf(moorage.KindBadRequest, "A label of %s has no name", of)
		case len(name) > LabelNameBytesMax:
			return moorage.Errorf(moorage.KindBadRequest,
				"The name of a label of %s has %d bytes, at most %d are possible", of, len(name), LabelNameBytesMax)
		case len(value) > LabelValueBytesMax:
			return moorage.Errorf(moorage.KindBadRequest,
				"The label %q of %s has %d bytes, at most %d are possible", name, of, len(value), LabelValueBytesMax)
		}
	}
	return nil
}

// labelling is a table or view whose labels will be replaced.
type labelling struct {
	found   *directory.Found
	damaged bool // the labels named in its pointer are missing or cannot be read
	labels  registry.Labels
	version registry.ID
}

func (p *parts) readLabelling(ctx context.Context, by directory.Asker, k *directory.Kind, ident moorage.Identifier,
	labels registry.Labels, version registry.ID) (state labelling, err error) {
	state = labelling{labels: labels, version: version}
	state.found, err = p.directory.FindFor(ctx, by, by.Verb.Needs(gate.OfObject, gate.Always), k, ident)
	if err != nil {
		return state, err
	}
	var had registry.Labels
	if !state.found.Pointer.Labels.IsZero() {
		records, err := p.ledger.Get(ctx, registry.LabelKey(state.found.Pointer.ID))
		if err != nil {
			return state, err
		}
		// Labels that cannot be read can still be replaced.
		had, err = registry.Decode[registry.Labels](records[0])
		state.damaged = err != nil || !records[0].Exists()
		state.labels.Unknown = had.Unknown
	}
	return state, p.checkLabelledFields(ctx, state.found, labels, had)
}

// checkLabelledFields returns KindBadRequest if labels has a field that is neither in the present
// schema nor in the old labels had.
func (p *parts) checkLabelledFields(ctx context.Context, found *directory.Found, labels, had registry.Labels) error {
	var added []int
	for _, field := range labels.Fields {
		if !slices.ContainsFunc(had.Fields, func(old registry.FieldLabels) bool { return old.Field == field.Field }) {
			added = append(added, field.Field)
		}
	}
	if len(added) == 0 {
		return nil
	}
	document, err := p.documents.Current(ctx, found)
	if err != nil {
		return err
	}
	schema := document.(interface {
		LackedField(ids []int) (id int, lacks bool)
	})
	if id, lacks := schema.LackedField(added); lacks {
		return moorage.Errorf(moorage.KindBadRequest, "%s has no field with the id %d",
			found.Pointer.Identifier(), id)
	}
	return nil
}

// plan plans the new labels of s. The pointer's ETag also stands for the label record: one Apply
// writes both.
func (s labelling) plan(attempt *commit.Attempt) (*commit.Plan, error) {
	before := s.found.Pointer
	if before.Labels == s.version && !s.damaged {
		return &commit.Plan{Empty: true}, nil
	}
	after, key := before, registry.LabelKey(before.ID)
	after.Labels = s.version
	after.Last = after.Written(registry.StateLive, attempt.Change, before.LastIn(registry.StateLive).Summary)
	puts := []ledger.Write{ledger.Replace(s.found.Record, registry.StateLive, after)}
	if !s.version.IsZero() {
		puts = append(puts, ledger.Put(key, registry.StateNone, s.labels))
	}
	writes, err := ledger.Encode(puts...)
	if s.version.IsZero() {
		writes = append(writes, registry.Delete(key))
	}
	return &commit.Plan{
		Conditions: []registry.Condition{ledger.Unchanged(s.found.Record)}, Writes: writes,
		Items: []registry.Item{registry.PointerItem(before, after)},
	}, err
}

// labelTextsBytesMax bounds the memory of cached labels.
const labelTextsBytesMax = 8 << 20

// labelTexts reads labels for answers, and caches their texts. A version is a hash of its text, so
// cached texts never become outdated. It is safe for concurrent use.
type labelTexts struct {
	ledger *ledger.Ledger
	log    *slog.Logger
	cache  *otter.Cache[registry.ID, []byte] // by version
}

func newLabelTexts(records *ledger.Ledger, log *slog.Logger) *labelTexts {
	return &labelTexts{records, log, otter.Must(&otter.Options[registry.ID, []byte]{
		MaximumWeight: labelTextsBytesMax,
		Weigher:       func(_ registry.ID, text []byte) uint32 { return uint32(len(text)) + 100 },
	})}
}

// textOf returns the labels of the pointer with this id, which names a version of its labels. If
// that version is not cached, textOf reads the present labels, which may be newer. Labels that
// cannot be read are left out: they must not hide a table.
func (t *labelTexts) textOf(ctx context.Context, pointer, version registry.ID) (LabelText, error) {
	if version.IsZero() {
		return LabelText{}, nil
	}
	if text, ok := t.cache.GetIfPresent(version); ok {
		return LabelText{version, text}, nil
	}
	records, err := t.ledger.Get(ctx, registry.LabelKey(pointer))
	if err != nil || !records[0].Exists() {
		return LabelText{}, err
	}
	labels, err := registry.Decode[registry.Labels](records[0])
	var text []byte
	if err == nil {
		text, version, err = labels.Text()
	}
	if err != nil {
		t.log.ErrorContext(ctx, "the labels of a table or view cannot be read",
			"pointer", pointer.String(), "error", err)
		return LabelText{}, nil
	}
	t.cache.Set(version, text)
	return LabelText{version, text}, nil
}

// ofMade returns the labels for the answer of a change that took effect. known has their version.
// If they cannot be read now, the answer has no labels.
func (t *labelTexts) ofMade(ctx context.Context, pointer registry.ID, known LabelText) LabelText {
	read, err := t.textOf(ctx, pointer, known.Version)
	if err != nil {
		return LabelText{}
	}
	return read
}
