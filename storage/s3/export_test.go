package s3

// AssumeSound has a store sign without a probe first, for tests of what is signed that reach no
// server.
func (s *Store) AssumeSound() {
	s.client.signing.mu.Lock()
	defer s.client.signing.mu.Unlock()
	s.client.signing.found = &signFindings{at: s.client.now()}
}

// ExplainLook returns what is said about the failure of finding a bucket.
func (s *Store) ExplainLook(bucket string, err error) error { return s.client.explainLook(bucket, err) }
