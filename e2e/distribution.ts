// The registry of the Distribution project, and a tool that copies to it, both from Debian.

/** Commands by the package that has them. */
export const registryPackages: Readonly<Record<string, string>> = {
  'docker-registry': 'docker-registry',
  skopeo: 'skopeo',
}
