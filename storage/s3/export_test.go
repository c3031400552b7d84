package s3

// AssumeSound makes a store sign without a probe, for tests without a server.
func (s *Store) AssumeSound() {
	s.client.signing.mu.Lock()
	defer s.client.signing.mu.Unlock()
	s.client.signing.found = &signFindings{at: s.client.now()}
}

// ExplainLook returns the explained error for a failure to find a bucket.
func (s *Store) ExplainLook(bucket string, err error) error { return s.client.explainLook(bucket, err) }
