// The blocks of the page about releases that run without one: release.test.ts raises the version of a copy, and flux-artifact.test.ts
// pushes the artifact to a registry of this machine.

import type { Step } from '../documents.ts'

const page = '.ci/RELEASING.md'

export const raisesVersion: Step = { page, block: 'npm version' }
export const pushesArtifact: Step = { page, block: 'skopeo copy' }

export const onRelease: readonly Step[] = [raisesVersion, pushesArtifact]
