'use strict';

/* The region of a deployment: the command line's, the environment's, the profile's. deploy/region.py finds the same for boto3. */

const fs = require('fs');
const os = require('os');
const path = require('path');

const DEFAULT = 'us-east-1';

/* A file's lines: those of AWS's configuration, by section. No file is an empty one. */
function lines(variable, name) {
  const file = (process.env[variable] || path.join(os.homedir(), '.aws', name)).replace(/^~(?=\/)/, os.homedir());
  return fs.existsSync(file) ? fs.readFileSync(file, 'utf8').split(/\r?\n/) : [];
}

/* The region that a file has for a profile. What is indented belongs to a setting above it. */
function regionIn(text, profile, prefix) {
  const names = [profile, `${prefix}${profile}`];
  let inside = false;
  let found;
  for (const line of text) {
    const section = /^\[\s*(.*?)\s*\]/.exec(line);
    if (section) inside = names.includes(section[1].replace(/["']/g, '').replace(/\s+/g, ' '));
    const setting = /^region\s*[=:]\s*(\S+)/i.exec(line);
    if (inside && setting) [, found] = setting;
  }
  return found;
}

module.exports = ({ options = {} } = {}) => {
  const named = options.region || process.env.AWS_REGION || process.env.AWS_DEFAULT_REGION;
  if (named) return named;
  const profile = options['aws-profile'] || process.env.AWS_PROFILE || process.env.AWS_DEFAULT_PROFILE || 'default';
  return (
    regionIn(lines('AWS_SHARED_CREDENTIALS_FILE', 'credentials'), profile, '') ||
    regionIn(lines('AWS_CONFIG_FILE', 'config'), profile, 'profile ') ||
    DEFAULT
  );
};
