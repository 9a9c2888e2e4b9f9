package config

import (
	"fmt"

	"github.com/geoalign/geoalign/config/section"
)

// Predicates on systems that facts take the place of.

type traits struct{ captions, words, fusion, teacher, tokens, stored, identities, prototypes, sentencePairs bool }

func (m Model) traits() traits {
	return traits{m.has(section.Captions), m.has(section.Words), m.has(section.Fusion), m.has(section.Momentum), m.has(section.Tokens),
		m.has(section.Stored), m.has(section.Identities), m.has(section.Prototypes), m.has(section.SentencePairs)}
}

func (m Model) named() string { return fmt.Sprintf("model.system %q", m.System) }

func (m Model) ImagesOnly() bool  { return m.has(section.ImagesAlone) }
func (m Model) TextsOnly() bool   { return m.has(section.Sentences) }
func (m Model) JudgesPairs() bool { return m.has(section.SentencePairs) }
func (m Model) Classifies() bool  { return m.has(section.Classes) }
func (m Model) seesViews() bool   { return m.has(section.Views) }
func (m Model) seesImages() bool  { return m.has(section.Images) }
func (m Model) ByIdentity() bool  { return m.has(section.Identities) }
func (m Model) HasTeacher() bool  { return m.has(section.Momentum) && !m.Interacts() }
func (m Model) Stored() bool      { return m.has(section.Stored) }
func (m Model) Fitted() bool      { return m.has(section.Fitted) }
func (m Model) Interacts() bool   { return m.Interaction.Kind != "" }
func (m Model) Adapts() bool      { return m.LoRA.Rank > 0 && m.has(section.Towers) }
func (m Model) Tunes() bool {
	return m.has(section.Towers) && (m.LoRA.Rank > 0 || len(m.Tuning.Methods()) > 0)
}

func (c *Config) hasHeads() bool     { return c.has(section.FeatureHeads) }
func (c *Config) hasGRU() bool       { return c.has(section.Recurrent) }
func (c *Config) readsResNet() bool  { return c.has(section.Convolutions) }
func (c *Config) ReadsRegions() bool { return c.has(section.Regions) }
func (c *Config) lacksTeacher() bool { return c.Model.has(section.Momentum) && !c.Momentum.Enabled }
func (c *Config) readsTeacher() bool { return c.has(section.TeacherFeatures) }
func (c Config) CentersFeatures() bool {
	return c.Model.has(section.FeatureHeads) && c.Model.Heads.Center
}
func (c Config) HeadsStart() string {
	if !c.Model.has(section.FeatureHeads) {
		return ""
	}
	return c.Model.Heads.Start
}

const needsTeacher = "it needs the teacher: set momentum.enabled = true"
