// Blocks of documents that install the command from release files. archives.test.ts runs them.

import type { Step } from '../documents.ts'

const page = 'operator/guide/cli.md'

export const onArchive: readonly Step[] = [
  { page, block: 'sha256sum --check --ignore-missing' },
  { page, block: 'tar -xzf penstock-VERSION-linux-x64.tar.gz' },
]
