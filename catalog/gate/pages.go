package gate

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"io"
	"strings"

	"moorage"
)

// SealedMark is the prefix of a sealed position in a list. No name contains it.
const SealedMark = "\x00"

// pageSeal returns the cipher that encrypts positions. It is nil while access control is disabled.
func (g *Guard) pageSeal(ctx context.Context) (cipher.AEAD, error) {
	if g == nil {
		return nil, nil
	}
	store, enabled, err := g.Store(ctx)
	if err != nil || !enabled {
		return nil, err
	}
	block, err := aes.NewCipher(store.PageKey[:])
	if err != nil {
		return nil, moorage.E("gate.pageSeal", "", moorage.KindInternal, err)
	}
	return cipher.NewGCM(block)
}

// SealPage returns an encrypted position in a list, which begins with SealedMark. Such a position
// may name an object that the caller must not see. While access control is disabled, it returns the
// position unchanged. list identifies the list.
//
// Errors: KindUnavailable.
func (g *Guard) SealPage(ctx context.Context, random io.Reader, list, position string) (string, error) {
	seal, err := g.pageSeal(ctx)
	if err != nil || seal == nil {
		return position, err
	}
	nonce := make([]byte, seal.NonceSize())
	if _, err := io.ReadFull(random, nonce); err != nil {
		return "", moorage.E("gate.SealPage", "", moorage.KindInternal, err)
	}
	return SealedMark + string(seal.Seal(nonce, nonce, []byte(position), []byte(list))), nil
}

// UnsealPage returns the position that was passed to SealPage. If a position is not encrypted,
// UnsealPage returns it unchanged.
//
// Errors: KindBadRequest for a position of another list; KindUnavailable.
func (g *Guard) UnsealPage(ctx context.Context, list, sealed string) (string, error) {
	text, found := strings.CutPrefix(sealed, SealedMark)
	if !found {
		return sealed, nil
	}
	seal, err := g.pageSeal(ctx)
	if err != nil {
		return "", err
	}
	if seal != nil && len(text) > seal.NonceSize() {
		n := seal.NonceSize()
		if position, err := seal.Open(nil, []byte(text[:n]), []byte(text[n:]), []byte(list)); err == nil {
			return string(position), nil
		}
	}
	return "", moorage.Errorf(moorage.KindBadRequest, "Invalid pageToken: it is not of this list")
}
