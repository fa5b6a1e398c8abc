// The registry of the Distribution project, and a tool to copy images to it, both from Debian.

/** Commands by Debian package. */
export const registryPackages: Readonly<Record<string, string>> = {
  'docker-registry': 'docker-registry',
  skopeo: 'skopeo',
}
