package identity

import (
	"crypto/sha256"
	"fmt"
	"hash/crc32"
	"io"
	"math/big"
	"strings"
)

// An API key has the form mrg_<id>_<secret>_<checksum>. The prefix lets scanners of source code
// find keys. All parts are in base62, so a key needs no escaping in URLs, headers and files.
const (
	keyPrefix        = "mrg_"
	keyIDBytes       = 12
	keySecretBytes   = 43 // 256 bits
	keyChecksumBytes = 6  // CRC-32 of all characters before it; shows a typing error
	keyBytes         = len(keyPrefix) + keyIDBytes + 1 + keySecretBytes + 1 + keyChecksumBytes
)

const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// NewKey is a newly drawn API key. Only its owner may see Text.
type NewKey struct {
	ID     string
	Text   string   // the whole key
	SHA256 [32]byte // hash of the secret, for the records
}

// NewAPIKey draws the secret of an API key. If id is empty, it also draws an id for a new key.
// Otherwise the secret is an additional one for the key with that id.
func NewAPIKey(random io.Reader, id string) (NewKey, error) {
	if id == "" {
		var err error
		if id, err = drawText(random, keyIDBytes); err != nil {
			return NewKey{}, err
		}
	}
	if !isBase62(id, keyIDBytes) {
		return NewKey{}, fmt.Errorf("%q is not the id of an API key", id)
	}
	secret, err := drawText(random, keySecretBytes)
	if err != nil {
		return NewKey{}, err
	}
	text := keyPrefix + id + "_" + secret
	return NewKey{ID: id, Text: text + "_" + checksum(text), SHA256: hashOf(secret)}, nil
}

// LooksLikeKey reports whether text has the form of an API key. The key need not exist.
func LooksLikeKey(text string) bool { return strings.HasPrefix(text, keyPrefix) }

// drawText returns size characters of base62, all equally likely.
func drawText(random io.Reader, size int) (string, error) {
	limit := new(big.Int).Exp(big.NewInt(int64(len(base62))), big.NewInt(int64(size)), nil)
	// 16 extra bytes make the bias of the modulo too small to matter.
	drawn := make([]byte, (limit.BitLen()+7)/8+16)
	if _, err := io.ReadFull(random, drawn); err != nil {
		return "", fmt.Errorf("draw a secret: %w", err)
	}
	return inBase62(new(big.Int).Mod(new(big.Int).SetBytes(drawn), limit), size), nil
}

func inBase62(n *big.Int, size int) string {
	text := make([]byte, size)
	base, digit := big.NewInt(int64(len(base62))), new(big.Int)
	for i := size - 1; i >= 0; i-- {
		n.DivMod(n, base, digit)
		text[i] = base62[digit.Int64()]
	}
	return string(text)
}

func checksum(text string) string {
	return inBase62(new(big.Int).SetUint64(uint64(crc32.ChecksumIEEE([]byte(text)))), keyChecksumBytes)
}

func hashOf(secret string) [32]byte { return sha256.Sum256([]byte(secret)) }

func isBase62(text string, size int) bool {
	return len(text) == size && strings.Trim(text, base62) == ""
}

// parseAPIKey returns the parts of a whole key.
func parseAPIKey(text string) (id, secret string, ok bool) {
	if len(text) != keyBytes || !strings.HasPrefix(text, keyPrefix) {
		return "", "", false
	}
	body, sum := text[:keyBytes-keyChecksumBytes-1], text[keyBytes-keyChecksumBytes:]
	id, secret = body[len(keyPrefix):][:keyIDBytes], body[len(body)-keySecretBytes:]
	ok = text[len(body)] == '_' && body[len(keyPrefix)+keyIDBytes] == '_' &&
		isBase62(id, keyIDBytes) && isBase62(secret, keySecretBytes) && sum == checksum(body)
	return id, secret, ok
}

// parsePair returns the parts of a key that was sent as a client id and a secret. The secret may be
// the whole key; in that case, the client id must match it or be empty.
func parsePair(clientID, clientSecret string) (id, secret string, ok bool) {
	if strings.HasPrefix(clientSecret, keyPrefix) {
		id, secret, ok = parseAPIKey(clientSecret)
		return id, secret, ok && (clientID == "" || clientID == id)
	}
	return clientID, clientSecret, isBase62(clientID, keyIDBytes) && isBase62(clientSecret, keySecretBytes)
}
