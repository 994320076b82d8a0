#include "apps/viewer/camera.h"

#include <algorithm>
#include <cmath>

#include <glm/gtc/matrix_transform.hpp>

namespace mulciber::viewer {
namespace {

constexpr float kFieldOfView = 0.6f;   // radians, up and down
constexpr float kWidestAspect = 1.5f;  // aspect for which the distance was chosen

}  // namespace

void Camera::turn(float yaw, float pitch) {
  yaw_ = std::clamp(yaw_ + yaw, -1.5f, 1.5f);  // words face a reader in front of them
  pitch_ = std::clamp(pitch_ + pitch, -0.6f, 1.4f);
}

void Camera::move(float right, float up) {
  const glm::vec3 forward = glm::normalize(target_ - eye());
  const glm::vec3 across = glm::normalize(glm::cross(forward, glm::vec3(0, 1, 0)));
  const float height = 2 * distance_ * std::tan(kFieldOfView / 2);
  target_ += (across * right + glm::cross(across, forward) * up) * height;
  target_ = glm::clamp(target_, glm::vec3(-12), glm::vec3(12));
}

void Camera::zoom(float factor) { distance_ = std::clamp(distance_ * factor, 1.0f, 40.0f); }

void Camera::reset() { *this = Camera(); }

glm::vec3 Camera::eye() const {
  return target_ + distance_ * glm::vec3(std::sin(yaw_) * std::cos(pitch_), std::sin(pitch_),
                                         std::cos(yaw_) * std::cos(pitch_));
}

float Camera::fitted(float aspect) const {
  if (aspect >= kWidestAspect) return kFieldOfView;
  return 2 * std::atan(std::tan(kFieldOfView / 2) * kWidestAspect / std::max(aspect, 0.2f));
}

glm::mat4 Camera::view_projection(float aspect) const {
  const float near = 0.1f, far = 100;
  glm::mat4 projection = glm::perspectiveRH_ZO(fitted(aspect), aspect, near, far);
  projection[1][1] *= -1;  // Vulkan counts rows from the top
  return projection * glm::lookAtRH(eye(), target_, glm::vec3(0, 1, 0));
}

float Camera::pixels_per_unit(glm::vec2 frame) const {
  return frame.y / (2 * std::tan(fitted(frame.x / frame.y) / 2));
}

}  // namespace mulciber::viewer
