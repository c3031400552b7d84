package s3

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// TestChecksum compares each algorithm with its published check value for the text "123456789".
func TestChecksum(t *testing.T) {
	t.Parallel()
	encode := func(text string) *string {
		raw, err := hex.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		return aws.String(base64.StdEncoding.EncodeToString(raw))
	}
	const sha256Of = "15e2b0d3c33891ebb0f1ef609ec419420c20e320ce94c65fbc8c3312448eb225"
	for _, tt := range []struct {
		name  string
		found s3.GetObjectOutput
		known bool
	}{
		{"none", s3.GetObjectOutput{}, false},
		{"crc32", s3.GetObjectOutput{ChecksumCRC32: encode("cbf43926")}, true},
		{"crc32c", s3.GetObjectOutput{ChecksumCRC32C: encode("e3069283")}, true},
		{"crc64nvme", s3.GetObjectOutput{ChecksumCRC64NVME: encode("ae8b14860a799888")}, true},
		{"sha1", s3.GetObjectOutput{ChecksumSHA1: encode("f7c3bc1d808e04732adf679965ccc34ca7ae3441")}, true},
		{"sha256", s3.GetObjectOutput{ChecksumSHA256: encode(sha256Of)}, true},
		{"of parts", s3.GetObjectOutput{ChecksumSHA256: encode(sha256Of), ChecksumType: types.ChecksumTypeComposite}, false},
		{"of parts, by its spelling", s3.GetObjectOutput{ChecksumCRC32: aws.String("y/Q5Jg==-2")}, false},
		{"another length", s3.GetObjectOutput{ChecksumCRC32: encode(sha256Of)}, false},
		{"several", s3.GetObjectOutput{ChecksumCRC32: aws.String("?"), ChecksumCRC32C: encode("e3069283")}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			sum, want := checksum(&tt.found)
			if (sum != nil) != tt.known {
				t.Fatalf("a checksum is known: %t, want %t", sum != nil, tt.known)
			}
			if sum == nil {
				return
			}
			sum.Write([]byte("123456789"))
			if got := sum.Sum(nil); !bytes.Equal(got, want) {
				t.Errorf("%x, want %x", got, want)
			}
		})
	}
}

// BenchmarkStamp computes the checksum of a 20 kB body, about the length of a metadata file.
func BenchmarkStamp(b *testing.B) {
	body := make([]byte, 20<<10)
	for name, stamp := range map[string]stamp{"sha256": stampSHA256, "crc32c": stampCRC32C} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				stamp(&s3.PutObjectInput{}, body)
			}
		})
	}
}
