package secrets

import (
	"context"
	"errors"
)

// Succession seals with the present source, and also opens values sealed with a former source. It
// is for moving a store from one source to another: Rewrap opens a value of the former source and
// seals it with the present source. It is safe for concurrent use.
type Succession struct {
	present Source
	former  Sealer
}

// Succeed returns a Succession from former to present.
func Succeed(present Source, former Sealer) *Succession { return &Succession{present, former} }

// Seal seals plain with the present source.
func (s *Succession) Seal(plain []byte, owner Owner) ([]byte, error) {
	return s.present.Seal(plain, owner)
}

// Open opens a value sealed with either source.
func (s *Succession) Open(sealed []byte, owner Owner) ([]byte, error) {
	plain, err := s.present.Open(sealed, owner)
	if !isForeign(err) {
		return plain, err
	}
	return s.openFormer(sealed, owner, err)
}

// Rewrap returns the value sealed with the present key of the present source.
func (s *Succession) Rewrap(sealed []byte, owner Owner) ([]byte, bool, error) {
	again, changed, err := s.present.Rewrap(sealed, owner)
	if !isForeign(err) {
		return again, changed, err
	}
	plain, err := s.openFormer(sealed, owner, err)
	if err != nil {
		return nil, false, err
	}
	again, err = s.present.Seal(plain, owner)
	return again, err == nil, err
}

// Turn rotates the key of the present source.
func (s *Succession) Turn(ctx context.Context) (now, before string, err error) {
	return s.present.Turn(ctx)
}

// Present returns the name of the key that seals now.
func (s *Succession) Present(ctx context.Context) (string, error) { return s.present.Present(ctx) }

// openFormer opens a value that the present source refused. If the former source refuses it too,
// the error has both reasons.
func (s *Succession) openFormer(sealed []byte, owner Owner, refused error) ([]byte, error) {
	plain, err := s.former.Open(sealed, owner)
	if err != nil {
		return nil, errors.Join(refused, err)
	}
	return plain, nil
}

// isForeign reports whether a source refused a value that may have been sealed with another source.
func isForeign(err error) bool { return errors.Is(err, ErrNoKey) || errors.Is(err, ErrOpen) }

var _ Source = (*Succession)(nil)
