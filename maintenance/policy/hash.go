package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"strconv"
)

// hashBytes is the length of a hash. A hash only has to distinguish rules of one table. It protects
// no secret.
const hashBytes = 8

// Hash returns 16 hexadecimal digits that identify the requirements of r. They do not depend on the
// source of the rule or its time. The length of each text is hashed too, so two different rules do
// not yield the same input.
func (r Rule) Hash() string {
	sum := sha256.New()
	add(sum, string(r.Type), strconv.FormatBool(r.Enabled), r.Held)
	for _, name := range sortedKeys(r.Values) {
		value := r.Values[name]
		add(sum, name, strconv.FormatInt(value.Number, 10), value.Text)
	}
	return hex.EncodeToString(sum.Sum(nil)[:hashBytes])
}

// HashOf returns a hash of policies, which depends on their order.
func HashOf(policies []Policy) string {
	sum := sha256.New()
	for _, p := range policies {
		add(sum, string(p.Source.Level), p.Source.Name, strconv.Itoa(len(p.Jobs)))
		for _, t := range sortedKeys(p.Jobs) {
			job := p.Jobs[t]
			add(sum, string(t), string(job.Status), strconv.Itoa(len(job.Settings)))
			for _, name := range sortedKeys(job.Settings) {
				add(sum, name, job.Settings[name])
			}
			if job.Unsafe {
				add(sum, "unsafe")
			}
		}
	}
	return hex.EncodeToString(sum.Sum(nil)[:hashBytes])
}

func add(to hash.Hash, texts ...string) {
	for _, text := range texts {
		_, _ = to.Write([]byte(strconv.Itoa(len(text)) + ":" + text))
	}
}
