package metadata

import (
	"bytes"
	"cmp"
	"fmt"
	"moorage/internal/jsontext"
	"reflect"
	"strings"
	"sync"
	"testing"
)

// One builder applies all updates of the table of updates, and its scratch is overwritten after
// each. What it makes is what a new builder makes, and stays so, also where it is the base of what
// follows.
func TestDocumentsDoNotShareScratch(t *testing.T) {
	t.Parallel()
	type made struct {
		document *Document
		raw      []byte
		index    string
	}
	var all []made
	reused := new(builder)
	apply := func(d *Document, updates []Update) *Document {
		want, wantErr := applyWith(new(builder), d, updates)
		got, err := applyWith(reused, d, updates)
		overwrite(&reused.scratch)
		reused.reset()
		if fmt.Sprint(err) != fmt.Sprint(wantErr) {
			t.Fatalf("error %v, want %v", err, wantErr)
		}
		if err != nil {
			return d
		}
		if !bytes.Equal(got.Raw(), want.Raw()) || describe(got) != describe(want) {
			t.Fatalf("%s became\n%s, want\n%s", d.Raw(), got.Raw(), want.Raw())
		}
		all = append(all, made{got, bytes.Clone(want.Raw()), describe(want)})
		return got
	}
	for _, row := range updateRows {
		if row.decode {
			continue
		}
		d := createTest(t, cmp.Or(row.version, formatVersionDefault))
		d = apply(d, decodeTest(t, row.setup))
		d = apply(d, decodeTest(t, row.updates))
		d = apply(d, decodeTest(t, `{"action":"set-properties","updates":{"write.metadata.previous-versions-max":"2","q\"":"\u0001"}}`))
		apply(d, decodeTest(t, `{"action":"remove-properties","removals":["q\""]}`))
	}
	for _, m := range all {
		if !bytes.Equal(m.document.Raw(), m.raw) || describe(m.document) != m.index {
			t.Errorf("%s has become %s", m.raw, m.document.Raw())
		}
	}
}

func applyWith(b *builder, d *Document, updates []Update) (*Document, error) {
	b.start(d, testEnv(1))
	if err := b.applyAll(updates); err != nil {
		return nil, err
	}
	if !b.changed {
		return d, nil
	}
	return b.finish()
}

// overwrite spoils all that s has room for.
func overwrite(s *scratch) {
	text := s.text[:cap(s.text)]
	for i := range text {
		text[i] = 'x'
	}
	for i := range s.changes {
		s.changes[i] = change{key: "spoiled"}
	}
	for a := range s.edits {
		edit := &s.edits[a]
		for i := range edit.added {
			edit.added[i] = newElement{-7, []byte("spoiled")}
		}
		dropped := edit.dropped[:cap(edit.dropped)]
		for i := range dropped {
			dropped[i] = true
		}
	}
}

// Commits at the same time take scratch from each other.
func TestConcurrentCommitsDoNotShareScratch(t *testing.T) {
	t.Parallel()
	const writers, commits = 8, 50
	base := createTest(t, 2)
	var wg sync.WaitGroup
	for writer := range writers {
		wg.Go(func() {
			d := base
			for n := range commits {
				value := fmt.Sprint(writer, n)
				next, err := d.Apply(decodeTest(t, fmt.Sprintf(`{"action":"set-properties","updates":{"w":%q}},{"action":"set-location","location":"s3://%[1]s"}`, value)), testEnv(n))
				if err != nil {
					t.Error(err)
					return
				}
				if w, _ := next.Property("w"); w != value || next.Location() != "s3://"+value {
					t.Errorf("writer %d got %s", writer, next.Raw())
				}
				d = next
			}
			if parsed, err := Parse(d.Raw()); err != nil || describe(parsed) != describe(d) {
				t.Errorf("writer %d made %s: %v", writer, d.Raw(), err)
			}
		})
	}
	wg.Wait()
}

// Not parallel: it looks for one builder among those that wait.
func TestScratchOfALargeCommitIsNotKept(t *testing.T) {
	for name, grow := range map[string]func(*scratch){
		"text":    func(s *scratch) { s.text = make([]byte, 0, scratchBytesMax+1) },
		"added":   func(s *scratch) { s.edit(snapshots).added = make([]newElement, 0, scratchBytesMax/32+1) },
		"dropped": func(s *scratch) { s.edit(metadataLog).dropped = make([]bool, 0, scratchBytesMax+1) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBuilder(createTest(t, 2), testEnv(1))
			grow(&b.scratch)
			b.release()
			for range 4 {
				if other := newBuilder(createTest(t, 2), testEnv(1)); other.held() > scratchBytesMax {
					t.Errorf("a request got %d bytes of scratch", other.held())
				}
			}
		})
	}
}

// Not parallel: it looks for one decoder among those that wait.
func TestDecodersForgetWhatTheyRead(t *testing.T) {
	many := make([]string, decoderRoomMax+1)
	for i := range many {
		many[i] = fmt.Sprintf(`"member %d":{}`, i)
	}
	for name, raw := range map[string]string{
		"good":         `[{"action":"set-location","location":"x"},{"action":"remove-properties","removals":[]}]`,
		"bad":          `[{"action":"set-location","location":"x"},{"action":"unknown","member":5}]`,
		"not JSON":     `[{"action":"set-location","location":{"a":{"b":`,
		"many members": `[{"action":"set-location","location":"x",` + strings.Join(many, ",") + `}]`,
		"deep":         `[{"action":"set-location","location":"x","y":` + strings.Repeat(`{"z":`, decoderRoomMax) + `0` + strings.Repeat(`}`, decoderRoomMax) + `}]`,
	} {
		t.Run(name, func(t *testing.T) {
			_, _ = strictUpdates([]byte(raw))
			_, _ = checked(DecodeUpdates, raw)
			for range 4 {
				d := newDecoder(jsontext.Checked{})
				if cap(d.members) > decoderRoomMax {
					t.Errorf("a request got room for %d members", cap(d.members))
				}
				if want := (cursor{jsontext.Checked{}.Reader()}); !reflect.DeepEqual(d.cursor, want) || len(d.members) != 0 {
					t.Errorf("a request got %+v", d)
				}
				for _, m := range d.members[:cap(d.members)] {
					if m != (jsonField{}) {
						t.Errorf("a request got member %+v", m)
					}
				}
			}
		})
	}
}
