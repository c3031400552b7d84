package s3

import (
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"hash"
	"hash/crc32"
	"hash/crc64"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// crc64NVME is the polynomial of CRC-64/NVME, in the bit order of package crc64.
const crc64NVME = 0x9a6c9329ac4bc9b5

// stamp sets the checksum of body in a write. The checksum is a header, which every server with
// checksums supports. The SDK would send it as a trailer.
type stamp func(input *s3.PutObjectInput, body []byte)

// stampSHA256 is for servers that are not known to check CRC32C.
func stampSHA256(input *s3.PutObjectInput, body []byte) {
	sum := sha256.Sum256(body)
	input.ChecksumSHA256 = aws.String(base64.StdEncoding.EncodeToString(sum[:]))
}

// stampCRC32C takes at most a tenth of the time of stampSHA256, and the same is true of the check
// of later reads. A server that does not support CRC32C would store the object unchecked; see
// probeChecksums.
func stampCRC32C(input *s3.PutObjectInput, body []byte) {
	sum := newCRC32C()
	sum.Write(body)
	input.ChecksumCRC32C = aws.String(base64.StdEncoding.EncodeToString(sum.Sum(nil)))
}

func newCRC32C() hash.Hash { return crc32.New(crc32.MakeTable(crc32.Castagnoli)) }

// checksum returns a hash, and the server's checksum of the whole object. At the end of the object,
// the hash must equal that checksum. If the server has no checksum of a known kind, it returns nil.
// It also returns nil for a multipart object whose checksum covers only the parts' checksums.
func checksum(found *s3.GetObjectOutput) (hash.Hash, []byte) {
	if found.ChecksumType == types.ChecksumTypeComposite {
		return nil, nil
	}
	for _, candidate := range []struct {
		text *string
		make func() hash.Hash
	}{
		{found.ChecksumSHA256, sha256.New},
		{found.ChecksumCRC64NVME, func() hash.Hash { return crc64.New(crc64.MakeTable(crc64NVME)) }},
		{found.ChecksumCRC32C, newCRC32C},
		{found.ChecksumCRC32, func() hash.Hash { return crc32.NewIEEE() }},
		{found.ChecksumSHA1, sha1.New},
	} {
		if candidate.text == nil {
			continue
		}
		sum := candidate.make()
		want, err := base64.StdEncoding.DecodeString(*candidate.text)
		if err == nil && len(want) == sum.Size() {
			return sum, want
		}
	}
	return nil, nil
}
